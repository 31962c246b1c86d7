//! Durations as people read them: two or three significant figures.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// What stands where a time is not known.
pub(super) const UNKNOWN: &str = "<unknown>";

/// How long ago `time` (RFC 3339) was; `<unknown>` without one, `<invalid>` for one that is no time.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.map(str::parse::<Timestamp>) {
        None => UNKNOWN.to_owned(),
        Some(Err(_)) => "<invalid>".to_owned(),
        Some(Ok(time)) => short(now.as_second() - time.as_second()),
    }
}

/// A duration in seconds as upstream writes it.
pub(super) fn short(seconds: i64) -> String {
    let pair = |large: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        // Clocks may differ a little.
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_upstream_writes_them() {
        let rows = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR + 5 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (9 * YEAR + 3 * DAY, "9y"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(short(seconds), expected);
        }
    }

    #[test]
    fn times_that_are_not_known_say_so() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(since(Some("2026-01-01T00:00:00Z"), now), "10m");
        assert_eq!(since(Some("2026-01-01T00:09:59.250000Z"), now), "1s");
        assert_eq!(since(None, now), "<unknown>");
        assert_eq!(since(Some("yesterday"), now), "<invalid>");
    }
}
