//! What the blob of a spilled result is called.

use std::iter;

use sha1::{Digest, Sha1};

use super::digest::hex;
use super::ids::OccurrenceKey;

/// How much of the call's id can be read in the name.
const READABLE_CHARS: usize = 60;

/// Digits of the hash. Ids of one session are few: 64 bits keep them apart.
const HASH_DIGITS: usize = 16;

/// A file name that belongs to one occurrence only.
///
/// 1 to 120 characters of `A-Z a-z 0-9 . _ -`, not a dot in front, ends in `.txt`. Tells ids apart
/// that differ in letter case or in characters a file name cannot have.
///
/// Source: design B1.
#[must_use]
pub fn blob_name(key: &OccurrenceKey) -> String {
    let at = key.at_ms.map_or("undated".to_owned(), |ms| ms.to_string());
    let hash = Sha1::new()
        .chain_update(&key.call_id)
        .chain_update([0])
        .chain_update(&at)
        .finalize();
    let digits: String = hex(&hash.into()).chars().take(HASH_DIGITS).collect();
    format!("{}_{at}_{digits}.txt", readable(&key.call_id))
}

fn readable(call_id: &str) -> String {
    let plain = |c: char| {
        let allowed = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if allowed { c } else { '_' }
    };
    let mut chars = call_id.chars().take(READABLE_CHARS).map(plain);
    match chars.next() {
        None => "call".to_owned(),
        // A dot in front would hide the file.
        Some('.') => iter::once('_').chain(chars).collect(),
        Some(first) => iter::once(first).chain(chars).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(name: &str) {
        assert!((1..=120).contains(&name.len()), "{name}");
        assert!(!name.starts_with('.'), "{name}");
        assert!(name.ends_with(".txt"), "{name}");
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(name.chars().all(allowed), "{name}");
    }

    #[test]
    fn the_id_and_the_time_can_be_read() {
        let name = blob_name(&OccurrenceKey::new("call/1", 1_745_251_200_000));
        assert!(name.starts_with("call_1_1745251200000_"), "{name}");
        let undated = blob_name(&OccurrenceKey::parse("call_1"));
        assert!(undated.starts_with("call_1_undated_"), "{undated}");
    }

    #[test]
    fn no_two_occurrences_share_a_name() {
        let long = "x".repeat(10_000);
        let longer = "x".repeat(10_001);
        let ids = [
            "", "call", "call/1", "call_1", "CALL_1", "call\0", "call\\1", "..", "../..", "._",
            ".hidden", "-rf", "日本", "😀😀", "a_1", "a", &long, &longer,
        ];
        let mut names = BTreeSet::new();
        for id in ids {
            for at_ms in [None, Some(0), Some(1), Some(u64::MAX)] {
                let name = blob_name(&OccurrenceKey {
                    call_id: id.to_owned(),
                    at_ms,
                });
                check(&name);
                assert!(names.insert(name.to_lowercase()), "{name}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_id_gives_a_plain_name(id in any::<String>(), at_ms: u64) {
            check(&blob_name(&OccurrenceKey::new(id, at_ms)));
        }
    }
}
