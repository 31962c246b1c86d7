//! Which of several functions of one name is meant, as far as they differ in what they cost.

use kube_cel::cel::common::ast::operators;

use super::types::Type;

/// Functions of one name that differ in what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    /// One whose cost is that of all others of its name, or one.
    Plain,
    AddTexts,
    AddLists,
    CompareTexts,
    InList,
    MatchesText,
    ContainsText,
    StartsOrEnds,
    TextToBytes,
    BytesToText,
    IndexList,
    IndexMap,
    AddressOfNetwork,
    /// An argument is a text that has to be read first.
    ReadsText,
}

/// The functions that may be meant.
pub(super) fn overloads(function: &str, target: Option<&Type>, args: &[Type]) -> Vec<Overload> {
    use Overload::{
        AddLists, AddTexts, AddressOfNetwork, BytesToText, CompareTexts, ContainsText, InList, IndexList, IndexMap,
        MatchesText, Plain, ReadsText, StartsOrEnds, TextToBytes,
    };
    let text = |found: &Type| matches!(found, Type::Text | Type::Bytes);
    match (function, target, args) {
        (operators::ADD, None, [left, right]) => match (left, right) {
            (one, other) if text(one) || text(other) => vec![AddTexts],
            (Type::List(_), _) | (_, Type::List(_)) => vec![AddLists],
            (Type::Dyn, Type::Dyn) => vec![Plain, AddTexts, AddLists],
            _ => vec![Plain],
        },
        (
            operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS,
            None,
            [left, right],
        ) => match (left, right) {
            (one, other) if text(one) || text(other) => vec![CompareTexts],
            (Type::Dyn, Type::Dyn) => vec![Plain, CompareTexts],
            _ => vec![Plain],
        },
        (operators::IN, None, [_, right]) => match right {
            Type::List(_) => vec![InList],
            Type::Dyn => vec![InList, Plain],
            _ => vec![Plain],
        },
        (operators::INDEX, None, [container, _]) => match container {
            Type::List(_) => vec![IndexList],
            Type::Map(..) => vec![IndexMap],
            _ => vec![IndexList, IndexMap],
        },
        ("matches", Some(_), [_]) => vec![MatchesText],
        ("contains", Some(_), [_]) => vec![ContainsText],
        ("startsWith" | "endsWith", Some(_), [_]) => vec![StartsOrEnds],
        ("bytes", None, [from]) => one_of(from, &Type::Text, TextToBytes),
        ("string", None, [from]) => one_of(from, &Type::Bytes, BytesToText),
        ("ip", Some(_), []) => vec![AddressOfNetwork],
        ("containsIP" | "containsCIDR", Some(_), [other]) => one_of(other, &Type::Text, ReadsText),
        _ => vec![Plain],
    }
}

/// The overload if the argument is of its type, another one if it is of another type.
fn one_of(found: &Type, wanted: &Type, overload: Overload) -> Vec<Overload> {
    match found {
        Type::Dyn => vec![Overload::Plain, overload],
        found if found == wanted => vec![overload],
        _ => vec![Overload::Plain],
    }
}
