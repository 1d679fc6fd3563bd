//! JSON texts as a JavaScript host writes them, so that all lanes say the same bytes.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Writes a value on one line.
#[must_use]
pub(super) fn compact(value: &Value) -> String {
    write(value, JavaScriptNumbers(CompactFormatter))
}

/// Writes a value over several lines, each level indented by one blank.
#[must_use]
pub(super) fn pretty(value: &Value) -> String {
    write(value, JavaScriptNumbers(PrettyFormatter::with_indent(b" ")))
}

fn write<F: Formatter>(value: &Value, formatter: F) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut text, formatter));
    written.expect("a `Value` has string keys only, and a `Vec` takes all bytes");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Writes fractions as `JSON.stringify` does; all else is left to the inner formatter.
struct JavaScriptNumbers<F>(F);

impl<F: Formatter> Formatter for JavaScriptNumbers<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(javascript_number(value).as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// `Number.prototype.toString`: an exponent from 1e21 up and below 1e-6, no negative zero.
fn javascript_number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:e}");
    let exponent = scientific.rsplit_once('e').map(|(_, exponent)| exponent);
    match exponent.and_then(|exponent| exponent.parse::<i32>().ok()) {
        Some(21..) => scientific.replace('e', "e+"),
        Some(..-6) => scientific,
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_javascript() {
        let rows = [
            ("1.5", "1.5"),
            ("-0.0", "0"),
            ("2.0", "2"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("-1.5e300", "-1.5e+300"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
        ];
        for (written, wanted) in rows {
            let value = serde_json::from_str(written).expect("it is JSON");
            assert_eq!(compact(&value), wanted);
        }
    }
}
