//! The order of parts: that there is one, and what it is.

use std::collections::BTreeSet;

use crate::part::Piece;

/// The length of the longest name of a part.
const NAME_CHARS_MAX: usize = 63;

/// Why parts have no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A name that cannot be one.
    #[error("a part cannot be called {0:?}: use up to 63 lowercase letters, digits and -")]
    Name(String),
    /// A name that two parts have.
    #[error("there are two parts called {0}: give each a name of its own")]
    Twice(String),
    /// One object as two parts.
    #[error("the parts {0} and {1} are the same object: drop one of them")]
    Same(String, String),
    /// A name that no part has.
    #[error("the part {part} is after {after}, but there is no part {after}: add it, or drop the .after")]
    Unknown {
        /// The part that names it.
        part: String,
        /// The name.
        after: String,
    },
    /// Parts that wait for each other.
    #[error("the parts {} wait for each other: drop one .after", .0.join(", "))]
    Circle(Vec<String>),
}

/// The names of the parts in waves: each wave can be made when those before it are ready.
pub(crate) fn waves(pieces: &[Piece]) -> Result<Vec<Vec<String>>, OrderError> {
    check_names(pieces)?;
    let mut open: Vec<&Piece> = pieces.iter().collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut waves = Vec::new();
    while !open.is_empty() {
        let is_next = |piece: &&Piece| piece.after.iter().all(|name| done.contains(name.as_str()));
        let (next, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(is_next);
        if next.is_empty() {
            return Err(OrderError::Circle(circle(&rest)));
        }
        done.extend(next.iter().map(|piece| piece.name.as_str()));
        waves.push(next.iter().map(|piece| piece.name.clone()).collect());
        open = rest;
    }
    Ok(waves)
}

/// The parts of a circle, of parts each of which waits for another one of them.
fn circle(stuck: &[&Piece]) -> Vec<String> {
    let find = |name: &str| stuck.iter().position(|piece| piece.name == name);
    let (mut path, mut at) = (Vec::new(), 0);
    loop {
        if let Some(start) = path.iter().position(|seen| *seen == at) {
            return path[start..].iter().map(|index: &usize| stuck[*index].name.clone()).collect();
        }
        path.push(at);
        let next = stuck[at].after.iter().find_map(|name| find(name));
        at = next.expect("what is stuck waits for something that is stuck");
    }
}

fn check_names(pieces: &[Piece]) -> Result<(), OrderError> {
    for (index, piece) in pieces.iter().enumerate() {
        if !is_name(&piece.name) {
            return Err(OrderError::Name(piece.name.clone()));
        }
        for other in &pieces[..index] {
            if other.name == piece.name {
                return Err(OrderError::Twice(piece.name.clone()));
            }
            if other.child.is_same_object(&piece.child) {
                return Err(OrderError::Same(other.name.clone(), piece.name.clone()));
            }
        }
        let unknown = piece.after.iter().find(|after| !pieces.iter().any(|piece| piece.name == **after));
        if let Some(after) = unknown {
            return Err(OrderError::Unknown { part: piece.name.clone(), after: after.clone() });
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_fit)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::{Desired, Outcome, Part};

    fn desired(parts: &[(&str, &[&str])]) -> Desired<()> {
        parts.iter().fold(Desired::new(), |desired, (name, after)| {
            let mut object = ConfigMap::default();
            object.metadata.name = Some((*name).to_owned());
            desired.part(after.iter().fold(Part::new(*name, object), |part, after| part.after(*after)))
        })
    }

    fn check(parts: &[(&str, &[&str])], expected: &str) {
        let text = match desired(parts).order() {
            Ok(waves) => waves.iter().map(|wave| wave.join(" ")).collect::<Vec<_>>().join(", "),
            Err(error) => error.to_string(),
        };
        assert_eq!(text, expected);
        let is_invalid = matches!(desired(parts).settled(), Outcome::Invalid { message } if message == expected);
        assert_eq!(is_invalid, desired(parts).order().is_err(), "a flaw in the order makes the intent invalid");
    }

    #[test]
    fn parts_come_in_waves() {
        check(&[], "");
        check(&[("a", &[]), ("b", &[])], "a b");
        check(&[("c", &["b"]), ("b", &["a"]), ("a", &[])], "a, b, c");
        check(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])], "a, b c, d");
    }

    #[test]
    fn what_is_no_order_is_named() {
        let unknown = "the part b is after c, but there is no part c: add it, or drop the .after";
        check(&[("a", &[]), ("b", &["c"])], unknown);
        check(&[("a", &["a"])], "the parts a wait for each other: drop one .after");
        let circle = "the parts b, d, c wait for each other: drop one .after";
        check(&[("a", &[]), ("b", &["a", "d"]), ("c", &["b"]), ("d", &["c"]), ("e", &["d"])], circle);
        check(&[("a", &[]), ("a", &[])], "there are two parts called a: give each a name of its own");
        check(&[("A b", &[])], "a part cannot be called \"A b\": use up to 63 lowercase letters, digits and -");
    }

    #[test]
    fn one_object_is_one_part() {
        let object = || {
            let mut object = ConfigMap::default();
            object.metadata.name = Some("o".into());
            object
        };
        let desired = Desired::<()>::new().part(Part::new("a", object())).part(Part::new("b", object()));
        assert_eq!(desired.order(), Err(OrderError::Same("a".into(), "b".into())));
        let desired = Desired::<()>::new().child(object()).part(Part::new("b", object()));
        let Outcome::Invalid { message } = desired.settled() else { panic!("a child and a part are the same object") };
        assert_eq!(message, "ConfigMap o is a child and the part b: drop one of them");
    }
}
