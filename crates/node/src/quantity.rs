//! Resource quantities as numbers: `500m`, `64Mi`, `1e3`.

use windlass_schema::quantity::nanos;

/// How often `divisor` fits into a quantity, rounded up, as the downward API reports resources.
pub(crate) fn divided(quantity: &str, divisor: &str) -> Option<i128> {
    let divisor = if divisor.is_empty() || divisor == "0" { "1" } else { divisor };
    let divisor = nanos(divisor).filter(|divisor| *divisor > 0)?;
    Some((nanos(quantity)? + divisor - 1) / divisor)
}

/// A limit in units of `unit`, rounded up; zero is none.
pub(crate) fn limit(quantity: &str, unit: &str) -> Option<u64> {
    u64::try_from(divided(quantity, unit)?).ok().filter(|limit| *limit > 0)
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
        assert_eq!([limit("64Mi", "1"), limit("250m", "1m"), limit("0", "1")], [Some(64 << 20), Some(250), None]);
    }
}
