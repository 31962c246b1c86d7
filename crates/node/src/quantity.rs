//! Resource quantities as numbers: `500m`, `64Mi`, `1e3`.

/// Binary and decimal suffixes and what they multiply by, in thousandths.
const SUFFIXES: [(&str, i128); 13] = [
    ("Ki", 1024 * 1000),
    ("Mi", 1024_i128.pow(2) * 1000),
    ("Gi", 1024_i128.pow(3) * 1000),
    ("Ti", 1024_i128.pow(4) * 1000),
    ("Pi", 1024_i128.pow(5) * 1000),
    ("Ei", 1024_i128.pow(6) * 1000),
    ("m", 1),
    ("k", 1000_i128.pow(2)),
    ("M", 1000_i128.pow(3)),
    ("G", 1000_i128.pow(4)),
    ("T", 1000_i128.pow(5)),
    ("P", 1000_i128.pow(6)),
    ("E", 1000_i128.pow(7)),
];

/// A quantity in thousandths, rounded up; none if it is malformed.
pub(crate) fn milli(text: &str) -> Option<i128> {
    let suffix = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix));
    let (number, scale) = suffix.map_or((text, 1000), |(suffix, scale)| (&text[..text.len() - suffix.len()], *scale));
    if let Ok(whole) = number.parse::<i64>() {
        return Some(i128::from(whole) * scale);
    }
    let value: f64 = number.parse().ok()?;
    value.is_finite().then(|| (value * scale as f64).ceil() as i128)
}

/// How often `divisor` fits into a quantity, rounded up, as the downward API reports resources.
pub(crate) fn divided(quantity: &str, divisor: &str) -> Option<i128> {
    let divisor = if divisor.is_empty() || divisor == "0" { "1" } else { divisor };
    let divisor = milli(divisor).filter(|divisor| *divisor > 0)?;
    let quantity = milli(quantity)?;
    Some((quantity + divisor - 1) / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_divided_upwards() {
        let check = |quantity: &str, divisor: &str, expect: i128| {
            assert_eq!(divided(quantity, divisor), Some(expect), "{quantity}/{divisor}")
        };
        check("500m", "", 1);
        check("500m", "1m", 500);
        check("64Mi", "1Mi", 64);
        check("64Mi", "0", 64 << 20);
        check("1.5", "1m", 1500);
        check("1e3", "1", 1000);
        assert_eq!(divided("x", "1"), None);
    }
}
