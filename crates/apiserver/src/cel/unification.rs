//! Whether types fit each other, and what parameters of types stand for.

use super::types::Type;

/// How many parts a type may have; what is beyond is anything. Types that contain themselves twice would double at every
/// step.
const PARTS_MAX: usize = 1000;

/// What parameters of types stand for, as far as it was found out.
#[derive(Debug, Default)]
pub(super) struct Unification {
    /// By the number of the parameter.
    found: Vec<Option<Type>>,
    /// What was found before, so that an attempt that fails leaves nothing behind.
    before: Vec<(u32, Option<Type>)>,
}

impl Unification {
    /// New parameters, of which the number of the first is returned.
    pub(super) fn parameters(&mut self, count: u32) -> u32 {
        let first = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        self.found.extend((0..count).map(|_| None));
        first
    }

    /// Whether a value of one type can stand for one of another, for every pair.
    pub(super) fn all_fit<'a>(&mut self, pairs: impl Iterator<Item = (&'a Type, &'a Type)>) -> bool {
        self.before.clear();
        for (given, wanted) in pairs {
            if !self.fits(given, wanted) {
                while let Some((number, found)) = self.before.pop() {
                    self.found[number as usize] = found;
                }
                return false;
            }
        }
        true
    }

    /// Whether a value of one type can stand for one of another.
    pub(super) fn fit(&mut self, given: &Type, wanted: &Type) -> bool {
        self.all_fit(std::iter::once((given, wanted)))
    }

    /// The type with all that was found out; parameters of which nothing is known can become `dyn`.
    pub(super) fn substituted(&self, found: &Type, open: bool) -> Type {
        self.part(found, open, &mut PARTS_MAX.clone())
    }

    fn part(&self, found: &Type, open: bool, left: &mut usize) -> Type {
        *left = left.saturating_sub(1);
        match found {
            _ if *left == 0 => Type::Dyn,
            Type::Parameter(number) => match self.of(*number) {
                Some(known) => self.part(known, open, left),
                None if open => Type::Dyn,
                None => found.clone(),
            },
            other => other.with_parts(|part| self.part(part, open, left)),
        }
    }

    fn of(&self, number: u32) -> Option<&Type> {
        self.found.get(number as usize)?.as_ref()
    }

    fn set(&mut self, number: u32, found: Type) {
        let before = self.found[number as usize].replace(found);
        self.before.push((number, before));
    }

    fn fits(&mut self, given: &Type, wanted: &Type) -> bool {
        if let Type::Parameter(number) = wanted {
            match self.stands_for(*number, given) {
                Verdict::Yes => return true,
                Verdict::NoLonger => return false,
                Verdict::No => {}
            }
        }
        if let Type::Parameter(number) = given {
            return self.stands_for(*number, wanted) == Verdict::Yes;
        }
        if given.is_open() || wanted.is_open() {
            return true;
        }
        match (given, wanted) {
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.fits(one, other)
            }
            (Type::Map(keys, values), Type::Map(other_keys, other_values)) => {
                self.fits(keys, other_keys) && self.fits(values, other_values)
            }
            (given, wanted) => given == wanted,
        }
    }

    /// Whether a parameter can stand for a type.
    fn stands_for(&mut self, number: u32, other: &Type) -> Verdict {
        if *other == Type::Parameter(number) {
            return Verdict::Yes;
        }
        if let Some(known) = self.of(number).cloned() {
            if known == *other {
                return Verdict::Yes;
            }
            if !self.fits(other, &known) {
                return Verdict::NoLonger;
            }
            let general = more_general(other, &known);
            if !self.occurs(number, &general) {
                self.set(number, general);
            }
            return Verdict::Yes;
        }
        if self.occurs(number, other) {
            return Verdict::No;
        }
        self.set(number, other.clone());
        Verdict::Yes
    }

    /// Whether a parameter is part of a type.
    fn occurs(&self, number: u32, within: &Type) -> bool {
        match within {
            Type::Parameter(other) if *other == number => true,
            Type::Parameter(other) => self.of(*other).is_some_and(|known| self.occurs(number, known)),
            other => other.parts().into_iter().any(|part| self.occurs(number, part)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
    /// It stands for something else already.
    NoLonger,
}

/// The one of two types that fit each other of which less is known.
pub(super) fn more_general(one: &Type, other: &Type) -> Type {
    if is_as_general(one, other) { one.clone() } else { other.clone() }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Parameter(_), _) => true,
        (_, Type::Dyn | Type::Parameter(_)) => false,
        (Type::Kind(_), Type::Kind(_)) => true,
        (Type::List(_), Type::List(_)) | (Type::Map(..), Type::Map(..)) | (Type::Optional(_), Type::Optional(_)) => {
            one.parts().into_iter().zip(other.parts()).all(|(one, other)| is_as_general(one, other))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_found_out() {
        let mut unification = Unification::default();
        let parameter = Type::Parameter(unification.parameters(1));
        let list = Type::list(parameter.clone());
        assert!(unification.fit(&Type::list(Type::Int), &list));
        assert_eq!(unification.substituted(&parameter, false), Type::Int);
        assert!(!unification.fit(&Type::Text, &parameter));
        assert!(unification.fit(&Type::Dyn, &parameter));
        assert_eq!(unification.substituted(&list, false), Type::list(Type::Dyn));
    }

    #[test]
    fn an_attempt_that_fails_leaves_nothing() {
        let mut unification = Unification::default();
        let parameter = Type::Parameter(unification.parameters(1));
        let pairs = [(&Type::Int, &parameter), (&Type::Text, &parameter)];
        assert!(!unification.all_fit(pairs.into_iter()));
        assert_eq!(unification.substituted(&parameter, true), Type::Dyn);
        assert!(!unification.fit(&Type::list(parameter.clone()), &parameter), "nothing is a list of itself");
    }

    #[test]
    fn null_is_no_text() {
        let mut unification = Unification::default();
        assert!(!unification.fit(&Type::Null, &Type::Text));
        assert!(!unification.fit(&Type::list(Type::Int), &Type::Null));
        assert!(unification.fit(&Type::Null, &Type::Duration));
        assert!(unification.fit(&Type::Null, &Type::Null));
    }
}
