//! Quantities (`500m`, `1Gi`, `1e3`): their value and the one way to write it.

/// The largest amount that upstream keeps; what is larger is cut to it.
const UNITS_MAX: i128 = i64::MAX as i128;

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// The suffixes of decimal amounts, from 10⁻⁹ in steps of 10³.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// The suffixes of binary amounts, from 1024¹.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    #[default]
    Decimal,
    Exponent,
    Binary,
}

/// An exact amount that remembers how it was written, so that sums look like what they were made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Reads a quantity. `None` when `text` is none.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text).map(|(nanos, format)| Self { nanos, format })
    }

    /// So many whole units.
    pub fn units(units: usize) -> Self {
        let nanos = i128::try_from(units).unwrap_or(UNITS_MAX) * NANOS_PER_UNIT;
        Self { nanos, format: Format::Decimal }
    }

    /// The amount in billionths of a unit.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The amount, rounded up to whole units.
    #[must_use]
    pub fn round_up(self) -> Self {
        let units = self.nanos.div_euclid(NANOS_PER_UNIT) + i128::from(self.nanos.rem_euclid(NANOS_PER_UNIT) != 0);
        Self { nanos: units * NANOS_PER_UNIT, ..self }
    }

    fn joined(self, other: Self, nanos: i128) -> Self {
        // Nothing has no form of its own.
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos, format }
    }
}

impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.joined(other, self.nanos.saturating_add(other.nanos))
    }
}

impl std::ops::Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.joined(other, self.nanos.saturating_sub(other.nanos))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&written(self.nanos, self.format))
    }
}

/// The canonical way to write the quantity `text`: no fraction, the largest suffix that keeps it exact.
///
/// `None` when `text` is no quantity.
pub fn canonical(text: &str) -> Option<String> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

fn written(nanos: i128, format: Format) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let is_small = nanos.abs() < 1024 * NANOS_PER_UNIT;
    if format == Format::Binary && !is_small && nanos % NANOS_PER_UNIT == 0 {
        return binary_text(nanos / NANOS_PER_UNIT);
    }
    let mut amount = nanos;
    let mut exponent = -9_i32;
    while amount % 1000 == 0 && (exponent < 18 || format == Format::Exponent) {
        amount /= 1000;
        exponent += 3;
    }
    match (format, exponent) {
        (Format::Exponent, 0) => amount.to_string(),
        (Format::Exponent, _) => format!("{amount}e{exponent}"),
        _ => format!("{amount}{}", DECIMAL[usize::try_from((exponent + 9) / 3).unwrap_or(DECIMAL.len() - 1)]),
    }
}

/// The amount in billionths of a unit, rounded up where it is finer. `None` when `text` is no quantity.
pub fn nanos(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| nanos)
}

/// The quantity with thousandths as its finest unit, in canonical form. `None` when `text` is no quantity.
pub fn round_up_to_milli(text: &str) -> Option<String> {
    const NANOS_PER_MILLI: i128 = 1_000_000;
    let nanos = nanos(text)?;
    if nanos % NANOS_PER_MILLI == 0 {
        return canonical(text);
    }
    let milli = nanos.div_euclid(NANOS_PER_MILLI) + 1;
    canonical(&format!("{milli}m"))
}

fn binary_text(mut amount: i128) -> String {
    let mut suffix = "";
    for next in BINARY {
        if amount % 1024 != 0 {
            break;
        }
        amount /= 1024;
        suffix = next;
    }
    format!("{amount}{suffix}")
}

fn parse(text: &str) -> Option<(i128, Format)> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end =
        unsigned.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (base, power, format) = scale(suffix)?;
    let fraction = significant(fraction);
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let nanos = if digits.is_empty() { 0 } else { nanos_of(digits, fraction.len(), base, power) };
    Some((if is_negative { -nanos } else { nanos }, format))
}

/// The digits of a fraction that can count; what is cut off still makes the amount round up.
fn significant(fraction: &str) -> String {
    const DIGITS_MAX: usize = 15;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() <= DIGITS_MAX { fraction.to_owned() } else { format!("{}1", &fraction[..DIGITS_MAX]) }
}

/// `digits` · 10^-`decimals` · `base`^`power` in nanos, rounded up and cut to the largest amount.
fn nanos_of(digits: &str, decimals: usize, base: i128, power: i32) -> i128 {
    let max = UNITS_MAX * NANOS_PER_UNIT;
    let Ok(mut numerator) = digits.parse::<i128>() else { return max };
    let mut exponent = 9 - i32::try_from(decimals).unwrap_or(i32::MAX);
    match base {
        10 => exponent += power,
        _ => {
            let Some(scaled) = numerator.checked_mul(base.pow(power.unsigned_abs())) else { return max };
            numerator = scaled;
        }
    }
    for _ in 0..exponent.max(0) {
        match numerator.checked_mul(10) {
            Some(scaled) if scaled <= max * 1024 => numerator = scaled,
            _ => return max,
        }
    }
    for _ in exponent.min(0)..0 {
        numerator = numerator / 10 + i128::from(numerator % 10 != 0);
    }
    numerator.min(max)
}

/// The base, its power and the format that a suffix stands for.
fn scale(suffix: &str) -> Option<(i128, i32, Format)> {
    if let Some(position) = BINARY.iter().position(|known| *known == suffix) {
        return Some((1024, i32::try_from(position).ok()? + 1, Format::Binary));
    }
    if let Some(position) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((10, i32::try_from(position).ok()? * 3 - 9, Format::Decimal));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse::<i16>().ok().map(|exponent| (10, exponent.into(), Format::Exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_canonical_form() {
        let check = |given: &str, expect: &str| assert_eq!(canonical(given).as_deref(), Some(expect), "{given}");
        check("0", "0");
        check("0Gi", "0");
        check("1000m", "1");
        check("0.5", "500m");
        check("100m", "100m");
        check("1500", "1500");
        check("1000", "1k");
        check("1024", "1024");
        check("1024Ki", "1Mi");
        check("1.5Gi", "1536Mi");
        check("1.1Ki", "1126400m");
        check("0.5Ki", "512");
        check("-1Gi", "-1Gi");
        check("1e3", "1e3");
        check("12e6", "12e6");
        check("1E", "1E");
        check("0.0000000001", "1n");
        check("+3", "3");
        check("10000Ei", "9223372036854775807");
        check("1.", "1");
        check("1.00000000000000000000000000000000000000000000000000", "1");
        check("0.33333333333333333333333333333333333333333333333333", "333333334n");
    }

    #[test]
    fn thousandths_are_the_finest_unit_of_resources() {
        let check =
            |given: &str, expect: &str| assert_eq!(round_up_to_milli(given).as_deref(), Some(expect), "{given}");
        check("1Gi", "1Gi");
        check("100m", "100m");
        check("0.0001", "1m");
        check("1500001u", "1501m");
    }

    #[test]
    fn sums_look_like_their_parts() {
        let sum = |a: &str, b: &str| (Quantity::parse(a).unwrap() + Quantity::parse(b).unwrap()).to_string();
        assert_eq!(sum("0", "252Mi"), "252Mi");
        assert_eq!(sum("252Mi", "4Mi"), "256Mi");
        assert_eq!(sum("500m", "0.5"), "1");
        assert_eq!((Quantity::parse("1Gi").unwrap() - Quantity::parse("512Mi").unwrap()).to_string(), "512Mi");
        assert_eq!(Quantity::parse("1500m").unwrap().round_up().to_string(), "2");
        assert!(Quantity::parse("1000m") == Quantity::parse("1"));
        assert!(Quantity::parse("1Ki") > Quantity::parse("1k"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "-", "Gi", "1gi", "1.2.3", "1 Gi", "a", "1e", "1Kii"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
