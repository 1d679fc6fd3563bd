//! Points in time as session files write them.

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Writes Unix milliseconds as ISO 8601 in UTC, with milliseconds.
#[must_use]
pub fn iso_from_ms(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let (year, month, day) = civil_from_days(at_ms.div_euclid(DAY_MS));
    let ms = at_ms.rem_euclid(DAY_MS);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1000 % 60,
        ms % 1000
    )
}

/// Reads ISO 8601 in UTC (`2026-12-01T01:57:56.694Z`, the fraction may be missing) as Unix
/// milliseconds; `None` for anything else and for times before 1970.
#[must_use]
pub fn ms_from_iso(iso: &str) -> Option<u64> {
    let (date, time) = iso.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(clock, ':')?;
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms: i64 = digits.parse().ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    let days = days_from_civil(year, month, day);
    u64::try_from(days * DAY_MS + seconds * 1000 + ms)
        .ok()
        .filter(|_| valid && second <= 60)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let numbers: Option<Vec<i64>> = text
        .split(separator)
        .map(|digits| digits.parse::<u32>().ok().map(i64::from))
        .collect();
    numbers?.try_into().ok()
}

/// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March, so that
/// the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let march_year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days =
        march_year.div_euclid(4) - march_year.div_euclid(100) + march_year.div_euclid(400);
    march_year * 365 + leap_days + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let mut march_year = shifted.div_euclid(365);
    while days_from_civil(march_year, 3, 1) > days {
        march_year -= 1;
    }
    let day_of_year = days - days_from_civil(march_year, 3, 1);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = if month > 2 {
        march_year
    } else {
        march_year + 1
    };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_868_799_001, "2000-02-29T23:59:59.001Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_796_090_276_694, "2026-12-01T01:57:56.694Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, iso) in rows {
            assert_eq!(iso_from_ms(ms), iso);
            assert_eq!(ms_from_iso(iso), Some(ms));
        }
        assert_eq!(ms_from_iso("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(ms_from_iso("1970-01-01T00:00:01.5Z"), Some(1500));
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "Z",
            "2026-12-01",
            "2026-13-01T00:00:00Z",
            "1960-01-01T00:00:00.000Z",
        ] {
            assert_eq!(ms_from_iso(text), None, "{text}");
        }
    }
}
