//! Durations as Go writes them: `15s`, `1m30s`, `250ms`.

/// The units, largest first, with the nanoseconds of each.
const UNITS: [(&str, i128); 7] = [
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];
const SECOND: u64 = 1_000_000_000;

/// The text of a number of nanoseconds.
pub fn text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let amount = nanos.unsigned_abs();
    let body = match amount {
        0 => return "0s".to_owned(),
        _ if amount < 1_000 => format!("{amount}ns"),
        _ if amount < 1_000_000 => format!("{}µs", fraction(amount, 1_000)),
        _ if amount < SECOND => format!("{}ms", fraction(amount, 1_000_000)),
        _ => {
            let (minutes, rest) = (amount / (60 * SECOND), amount % (60 * SECOND));
            let seconds = format!("{}s", fraction(rest, SECOND));
            match (minutes / 60, minutes % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    };
    format!("{sign}{body}")
}

/// `amount` in units of `unit`, without zeros at the end.
fn fraction(amount: u64, unit: u64) -> String {
    let (whole, rest) = (amount / unit, amount % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// The nanoseconds of a text; `None` if it is no duration.
pub fn nanos(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, tail) = rest.split_at(end);
        let (unit, size) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(*size)?)?;
        if !part.is_empty() {
            let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
            total = total.checked_add(part.parse::<i128>().ok()?.checked_mul(*size)? / scale)?;
        }
        rest = &tail[unit.len()..];
    }
    i64::try_from(sign * total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_and_read_as_go_does() {
        let check = |amount: i64, written: &str| {
            assert_eq!(text(amount), written);
            assert_eq!(nanos(written), Some(amount), "{written}");
        };
        check(0, "0s");
        check(15_000_000_000, "15s");
        check(90_000_000_000, "1m30s");
        check(3_600_000_000_000, "1h0m0s");
        check(10_016_000_000, "10.016s");
        check(250_000_000, "250ms");
        check(1_500, "1.5µs");
        check(-7, "-7ns");
        assert_eq!(nanos("1.5h"), Some(5_400_000_000_000));
        for wrong in ["", "5", "s", ".s", "5x", "-", "999999999999h"] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
    }
}
