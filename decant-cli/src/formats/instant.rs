//! Points in time as sessions write them.

use decant_host::ms_from_iso;
use serde_json::Value;

/// Reads Unix milliseconds, or an ISO 8601 time in UTC (`2025-11-20T23:33:50.805Z`).
pub(super) fn epoch_ms(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| as_whole(number.as_f64()?)),
        Value::String(text) => ms_from_iso(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Fractions of a millisecond are cut off.
fn as_whole(ms: f64) -> Option<u64> {
    const LAST_EXACT: f64 = 9_007_199_254_740_992.0;
    (0.0..LAST_EXACT).contains(&ms).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_read() {
        let rows = [
            (json!("1970-01-01T00:00:00Z"), Some(0)),
            (json!("2024-02-29T12:00:00.5Z"), Some(1_709_208_000_500)),
            (json!("2025-11-20T23:33:50.805Z"), Some(1_763_681_630_805)),
            (
                json!("2025-01-01T00:00:00.123456Z"),
                Some(1_735_689_600_123),
            ),
            (json!(1_745_251_200_000_u64), Some(1_745_251_200_000)),
            (json!(17.9), Some(17)),
            (json!("yesterday"), None),
            (json!("2025-13-01T00:00:00Z"), None),
            (json!(-1), None),
            (json!(null), None),
        ];
        for (value, expected) in rows {
            assert_eq!(epoch_ms(Some(&value)), expected, "{value}");
        }
    }
}
