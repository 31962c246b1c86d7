//! Quantities such as `500m`, `1.5Gi` or `1e3`, as exact numbers.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A quantity in units of 10⁻⁹, the finest step that the API knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(i128);

const NANO: i128 = 1_000_000_000;

/// The binary suffixes and what they stand for.
const BINARY: [(&str, i128); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40), ("Pi", 1 << 50), ("Ei", 1 << 60)];

impl Amount {
    /// The amount of `units` whole units.
    pub(crate) fn units(units: i64) -> Self {
        Self(i128::from(units) * NANO)
    }

    /// The amount of so many units of 10⁻⁹.
    pub(crate) fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// The amount in units of 10⁻⁹.
    pub(crate) fn nanos(self) -> i128 {
        self.0
    }

    /// The amount in thousandths, rounded up.
    pub(crate) fn millis(self) -> i64 {
        let millis = self.0.div_euclid(1_000_000) + i128::from(self.0.rem_euclid(1_000_000) != 0);
        i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
    }

    /// Reads a quantity; fractions finer than 10⁻⁹ are rounded up. `None` if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        windlass_schema::quantity::nanos(text).map(Self)
    }
}

impl From<&Quantity> for Amount {
    fn from(quantity: &Quantity) -> Self {
        // The API refuses what cannot be read, so this is for objects that got past it.
        Self::parse(&quantity.0).unwrap_or_default()
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::add)
    }
}

/// The shortest exact decimal form, or a binary suffix where the number is a whole multiple of one.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(nano) = *self;
        if nano % NANO != 0 {
            let steps = [("m", 1_000_000), ("u", 1_000), ("n", 1)];
            let (suffix, step) = steps.into_iter().find(|(_, step)| nano % step == 0).unwrap_or(("n", 1));
            return write!(f, "{}{suffix}", nano / step);
        }
        let whole = nano / NANO;
        let binary = BINARY.iter().rev().find(|(_, factor)| whole != 0 && whole % factor == 0);
        match binary {
            Some((suffix, factor)) => write!(f, "{}{suffix}", whole / factor),
            None => write!(f, "{whole}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        let check = |text: &str, nano: Option<i128>, shown: &str| {
            let amount = Amount::parse(text);
            assert_eq!(amount, nano.map(Amount), "{text}");
            assert_eq!(amount.map(|amount| amount.to_string()).unwrap_or_default(), shown, "{text}");
        };
        check("1", Some(NANO), "1");
        check("500m", Some(500_000_000), "500m");
        check("0.5", Some(500_000_000), "500m");
        check("1.5Gi", Some(1_610_612_736 * NANO), "1536Mi");
        check("128Mi", Some(134_217_728 * NANO), "128Mi");
        check("1e3", Some(1_000 * NANO), "1000");
        check("1E3", Some(1_000 * NANO), "1000");
        check("2k", Some(2_000 * NANO), "2000");
        check("-1", Some(-NANO), "-1");
        check("0.0000000001", Some(1), "1n");
        check("", None, "");
        check("abc", None, "");
        check("1Zi", None, "");
    }
}
