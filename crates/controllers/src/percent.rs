//! Values that are a number or a percentage of a total, as in `maxSurge: 25%`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a fraction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// The number that `value` stands for, of `total`. Text that is no percentage counts as 0: the API refuses it.
pub(crate) fn of(value: &IntOrString, total: i32, round: Round) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let Some(percent) = text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok()) else { return 0 };
            let scaled = percent * i64::from(total);
            let whole = match round {
                Round::Up => (scaled + 99).div_euclid(100),
                Round::Down => scaled.div_euclid(100),
            };
            i32::try_from(whole).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_asked() {
        let check = |value: &str, total, up, down| {
            let value = IntOrString::String(value.to_owned());
            assert_eq!(
                (of(&value, total, Round::Up), of(&value, total, Round::Down)),
                (up, down),
                "{value:?} of {total}"
            );
        };
        check("25%", 3, 1, 0);
        check("25%", 4, 1, 1);
        check("100%", 7, 7, 7);
        check("0%", 7, 0, 0);
        check("30%", 10, 3, 3);
        check("nonsense", 10, 0, 0);
        assert_eq!(of(&IntOrString::Int(5), 2, Round::Down), 5);
    }
}
