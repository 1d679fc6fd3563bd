//! How entries are read and written: by tables of their fields.
//!
//! Derived code would be some 5 KB in the component for each type. Here a type only says which
//! fields it has and where they are; all reading and writing is there once.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::FlushOutcome;

/// When a field is written.
#[derive(Clone, Copy)]
pub(super) enum When {
    Always,
    /// Not if it is `None`, empty or `false`.
    Set,
}

/// A JSON object with known fields.
pub(super) trait Record {
    /// Names and rules of the fields, in the order in which they are written.
    fn fields(&self) -> &'static [(&'static str, When)];

    /// The value of the field at this place in the list.
    fn get(&self, field: usize) -> Option<&dyn Value>;

    fn get_mut(&mut self, field: usize) -> Option<&mut dyn Value>;
}

/// An array.
pub(super) trait List {
    fn get(&self, at: usize) -> Option<Slot<'_>>;

    /// Adds an item.
    fn grow(&mut self) -> Option<SlotMut<'_>>;
}

/// A value or `null`.
pub(super) trait Maybe {
    fn get(&self) -> Option<Slot<'_>>;

    fn clear(&mut self);

    /// Makes it a value.
    fn fill(&mut self) -> SlotMut<'_>;
}

/// A value that is one of a few words.
pub(super) trait Word {
    fn word(&self) -> &'static str;

    /// Makes it what a word says; an unknown word says what a missing one does.
    fn set(&mut self, word: &str);
}

/// A value to write.
pub(super) enum Slot<'a> {
    Flag(bool),
    Whole(u64),
    Signed(i64),
    Real(f64),
    Text(&'a str),
    Raw(&'a RawValue),
    Maybe(&'a dyn Maybe),
    List(&'a dyn List),
    Record(&'a dyn Record),
}

/// Where a value is to be read into.
pub(super) enum SlotMut<'a> {
    Flag(&'a mut bool),
    Small(&'a mut u32),
    Whole(&'a mut u64),
    Signed(&'a mut i64),
    Real(&'a mut f64),
    Text(&'a mut String),
    Word(&'a mut dyn Word),
    Raw(&'a mut Box<RawValue>),
    Maybe(&'a mut dyn Maybe),
    List(&'a mut dyn List),
    Record(&'a mut dyn Record),
}

/// A type that a field can have.
pub(super) trait Value {
    fn slot(&self) -> Slot<'_>;

    fn slot_mut(&mut self) -> SlotMut<'_>;
}

macro_rules! plain_value {
    ($type:ty, $self:ident, $read:expr, $slot_mut:ident) => {
        impl Value for $type {
            fn slot(&$self) -> Slot<'_> {
                $read
            }

            fn slot_mut(&mut self) -> SlotMut<'_> {
                SlotMut::$slot_mut(self)
            }
        }
    };
}

plain_value!(bool, self, Slot::Flag(*self), Flag);
plain_value!(u32, self, Slot::Whole(u64::from(*self)), Small);
plain_value!(u64, self, Slot::Whole(*self), Whole);
plain_value!(i64, self, Slot::Signed(*self), Signed);
plain_value!(f64, self, Slot::Real(*self), Real);
plain_value!(String, self, Slot::Text(self), Text);
plain_value!(FlushOutcome, self, Slot::Text(self.word()), Word);
plain_value!(Box<RawValue>, self, Slot::Raw(self), Raw);

impl<T: Value + Default> Value for Option<T> {
    fn slot(&self) -> Slot<'_> {
        Slot::Maybe(self)
    }

    fn slot_mut(&mut self) -> SlotMut<'_> {
        SlotMut::Maybe(self)
    }
}

impl<T: Value + Default> Maybe for Option<T> {
    fn get(&self) -> Option<Slot<'_>> {
        self.as_ref().map(Value::slot)
    }

    fn clear(&mut self) {
        *self = None;
    }

    fn fill(&mut self) -> SlotMut<'_> {
        self.insert(T::default()).slot_mut()
    }
}

impl<T: Value + Default> Value for Vec<T> {
    fn slot(&self) -> Slot<'_> {
        Slot::List(self)
    }

    fn slot_mut(&mut self) -> SlotMut<'_> {
        SlotMut::List(self)
    }
}

impl<T: Value + Default> List for Vec<T> {
    fn get(&self, at: usize) -> Option<Slot<'_>> {
        self.as_slice().get(at).map(Value::slot)
    }

    fn grow(&mut self) -> Option<SlotMut<'_>> {
        self.push(T::default());
        self.last_mut().map(Value::slot_mut)
    }
}

impl Slot<'_> {
    /// Whether it is `None`, empty or `false`.
    fn is_unset(&self) -> bool {
        match self {
            Self::Flag(flag) => !flag,
            Self::Maybe(maybe) => maybe.get().is_none(),
            Self::List(list) => list.get(0).is_none(),
            Self::Text(text) => text.is_empty(),
            Self::Whole(_) | Self::Signed(_) | Self::Real(_) | Self::Raw(_) | Self::Record(_) => {
                false
            }
        }
    }
}

impl Serialize for Slot<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Raw(json) => json.serialize(serializer),
            Self::Maybe(maybe) => match maybe.get() {
                Some(slot) => slot.serialize(serializer),
                None => serializer.serialize_none(),
            },
            Self::List(list) => {
                let items = (0..).map_while(|at| list.get(at));
                serializer.collect_seq(items)
            }
            Self::Record(record) => {
                let mut map = serializer.serialize_map(None)?;
                for (field, (name, when)) in record.fields().iter().enumerate() {
                    let Some(value) = record.get(field) else {
                        continue;
                    };
                    let slot = value.slot();
                    let is_left_out = matches!(when, When::Set) && slot.is_unset();
                    if !is_left_out {
                        map.serialize_entry(name, &slot)?;
                    }
                }
                map.end()
            }
        }
    }
}

/// Reads a JSON object. What it has no field for is passed over, what it lacks stays as it is.
///
/// # Errors
/// No object, a value of another type than its field's, or a field that is there twice.
pub(super) fn read<'de, D: Deserializer<'de>>(
    record: &mut dyn Record,
    deserializer: D,
) -> Result<(), D::Error> {
    SlotMut::Record(record).deserialize(deserializer)
}

impl<'de> DeserializeSeed<'de> for SlotMut<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            Self::Flag(flag) => *flag = bool::deserialize(deserializer)?,
            Self::Small(number) => {
                let read = u64::deserialize(deserializer)?;
                *number = u32::try_from(read).map_err(D::Error::custom)?;
            }
            Self::Whole(number) => *number = u64::deserialize(deserializer)?,
            Self::Signed(number) => *number = i64::deserialize(deserializer)?,
            Self::Real(number) => *number = f64::deserialize(deserializer)?,
            Self::Text(text) => *text = String::deserialize(deserializer)?,
            Self::Word(word) => word.set(&String::deserialize(deserializer)?),
            Self::Raw(json) => *json = Box::deserialize(deserializer)?,
            Self::Maybe(_) => deserializer.deserialize_option(Reading(self))?,
            Self::List(_) => deserializer.deserialize_seq(Reading(self))?,
            Self::Record(_) => deserializer.deserialize_map(Reading(self))?,
        }
        Ok(())
    }
}

/// Takes the parts of a value that has some.
struct Reading<'a>(SlotMut<'a>);

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what the entry has here")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        if let SlotMut::Maybe(maybe) = self.0 {
            maybe.clear();
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let SlotMut::Maybe(maybe) = self.0 else {
            return Err(D::Error::custom("a value or null"));
        };
        maybe.fill().deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let SlotMut::List(list) = self.0 else {
            return Err(A::Error::custom("a list"));
        };
        while let Some(()) = items.next_element_seed(Item(list))? {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let SlotMut::Record(record) = self.0 else {
            return Err(A::Error::custom("an object"));
        };
        let mut seen = 0_u64;
        while let Some(field) = fields.next_key_seed(Name(record.fields()))? {
            let Some(value) = record.get_mut(field) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let others = seen;
            seen |= 1 << field;
            if seen == others {
                return Err(A::Error::custom("a field that is there twice"));
            }
            fields.next_value_seed(value.slot_mut())?;
        }
        Ok(())
    }
}

/// The name of the next field, which is one of these or unknown.
struct Name(&'static [(&'static str, When)]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        let known = self.0.iter().position(|(known, _)| *known == name);
        Ok(known.unwrap_or(self.0.len()))
    }
}

/// The next item of a list: added only once there is one.
struct Item<'a>(&'a mut dyn List);

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0.grow() {
            Some(slot) => slot.deserialize(deserializer),
            None => Ok(()),
        }
    }
}

/// Says of a type which fields it has, what they are called in JSON, and whether they are written
/// `always` or only if they are `set`.
macro_rules! record {
    ($type:ident { $($field:ident: $name:literal $when:ident,)* }) => {
        impl record::Record for $type {
            fn fields(&self) -> &'static [(&'static str, record::When)] {
                &[$(($name, record::record!(@$when))),*]
            }

            fn get(&self, field: usize) -> Option<&dyn record::Value> {
                #[expect(non_camel_case_types, reason = "they are the names of the fields")]
                enum Field { $($field),* }
                match field {
                    $(at if at == Field::$field as usize => Some(&self.$field),)*
                    _ => None,
                }
            }

            fn get_mut(&mut self, field: usize) -> Option<&mut dyn record::Value> {
                #[expect(non_camel_case_types, reason = "they are the names of the fields")]
                enum Field { $($field),* }
                match field {
                    $(at if at == Field::$field as usize => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }

        impl record::Value for $type {
            fn slot(&self) -> record::Slot<'_> {
                record::Slot::Record(self)
            }

            fn slot_mut(&mut self) -> record::SlotMut<'_> {
                record::SlotMut::Record(self)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                record::Slot::Record(self).serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut read = Self::default();
                record::read(&mut read, deserializer)?;
                Ok(read)
            }
        }
    };
    (@always) => { record::When::Always };
    (@set) => { record::When::Set };
}
pub(super) use record;
