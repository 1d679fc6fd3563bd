//! Points in time as sessions write them.

use serde_json::Value;

/// Reads Unix milliseconds, or an ISO 8601 time in UTC (`2025-11-20T23:33:50.805Z`).
pub(super) fn epoch_ms(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| as_whole(number.as_f64()?)),
        Value::String(text) => iso(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Fractions of a millisecond are cut off.
fn as_whole(ms: f64) -> Option<u64> {
    const LAST_EXACT: f64 = 9_007_199_254_740_992.0;
    (0.0..LAST_EXACT).contains(&ms).then_some(ms as u64)
}

fn iso(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let days = days_since_epoch(date.next()??, date.next()??, date.next()??)?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let seconds = clock.next()?? * 3600 + clock.next()?? * 60 + clock.next()??;
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    u64::try_from((days * 86_400 + seconds) * 1000 + millis).ok()
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years are counted from March on, so that the leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    const MARCH_0_TO_1970: i64 = 719_469;
    Some(year * 365 + leap_days + before_month + day - MARCH_0_TO_1970)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_read_and_written() {
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
