//! What functions yield, and which of several functions of one name is meant.

use std::sync::Arc;

use kube_cel::cel::common::ast::operators;

use super::{macros, types::Type};

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

/// The functions whose results have a type without parts.
const SCALARS: [(Type, &[&str]); 9] = [
    (
        Type::Bool,
        &[
            "startsWith",
            "endsWith",
            "contains",
            "matches",
            "isIP",
            "isCIDR",
            "isURL",
            "isQuantity",
            "isSemver",
            "isSorted",
            "hasValue",
            "isGreaterThan",
            "isLessThan",
            "allowed",
            "errored",
            "isInteger",
            "ip.isCanonical",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "containsIP",
            "containsCIDR",
            "bool",
            "sets.contains",
            "sets.intersects",
            "sets.equivalent",
        ],
    ),
    (
        Type::Text,
        &[
            "string",
            "lowerAscii",
            "upperAscii",
            "trim",
            "substring",
            "join",
            "format",
            "replace",
            "charAt",
            "find",
            "error",
            "reason",
            "getScheme",
            "getHostname",
            "getHost",
            "getPort",
            "getEscapedPath",
            "strings.quote",
            "jsonpatch.escapeKey",
            "base64.encode",
        ],
    ),
    (
        Type::Int,
        &[
            "size",
            "int",
            "indexOf",
            "lastIndexOf",
            "family",
            "prefixLength",
            "sign",
            "asInteger",
            "major",
            "minor",
            "patch",
            "compareTo",
            "getFullYear",
            "getMonth",
            "getDayOfYear",
            "getDayOfMonth",
            "getDate",
            "getDayOfWeek",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
        ],
    ),
    (Type::Double, &["double", "asApproximateFloat"]),
    (Type::Uint, &["uint"]),
    (Type::Bytes, &["bytes", "base64.decode"]),
    (Type::Timestamp, &["timestamp"]),
    (Type::Duration, &["duration"]),
    (Type::Kind, &["type"]),
];

/// What a function yields.
pub(super) fn result(function: &str, target: Option<&Type>, args: &[Type]) -> Type {
    let subject = target.or(args.first()).unwrap_or(&Type::Dyn);
    if let Some((found, _)) = SCALARS.iter().find(|(_, functions)| functions.contains(&function)) {
        return found.clone();
    }
    match function {
        "split" | "findAll" => Type::list(Type::Text),
        "lists.range" => Type::list(Type::Int),
        "sum" | "min" | "max" => subject.members().1,
        "distinct" | "sort" | "slice" | "reverse" | "or" | macros::SORT_BY_KEYS => subject.clone(),
        "first" | "last" => Type::optional(subject.members().1),
        macros::INSERT => inserted(args),
        _ => of_library(function, subject, args),
    }
}

fn of_library(function: &str, subject: &Type, args: &[Type]) -> Type {
    match function {
        "url" => Type::Named("kubernetes.URL"),
        "ip" => Type::Named("net.IP"),
        "cidr" | "masked" => Type::Named("net.CIDR"),
        "quantity" | "add" | "sub" => Type::Named("kubernetes.Quantity"),
        "semver" => Type::Named("kubernetes.Semver"),
        "getQuery" => Type::Map(Arc::new(Type::Text), Arc::new(Type::list(Type::Text))),
        "format.named" => Type::optional(Type::Named("kubernetes.NamedFormat")),
        "validate" => Type::optional(Type::list(Type::Text)),
        "check" => Type::Named("kubernetes.authorization.Decision"),
        "path" => Type::Named("kubernetes.authorization.PathCheck"),
        "group" => Type::Named("kubernetes.authorization.GroupCheck"),
        "resource" | "subresource" | "namespace" | "name" | "fieldSelector" | "labelSelector" => {
            Type::Named("kubernetes.authorization.ResourceCheck")
        }
        "serviceAccount" => Type::Named("kubernetes.authorization.Authorizer"),
        "optional.of" | "optional.ofNonZeroValue" => Type::optional(args.first().cloned().unwrap_or(Type::Dyn)),
        "optional.none" => Type::optional(Type::Dyn),
        "value" | "orValue" => match subject {
            Type::Optional(inner) => (**inner).clone(),
            _ => Type::Dyn,
        },
        name if name.starts_with("format.") => Type::Named("kubernetes.NamedFormat"),
        _ => Type::Dyn,
    }
}

/// The map after an entry was put into it.
fn inserted(args: &[Type]) -> Type {
    let map = args.first().cloned().unwrap_or(Type::Dyn);
    match args {
        [_, key, value] => map.join(Type::Map(Arc::new(key.clone()), Arc::new(value.clone()))),
        [_, entry] => map.join(entry.clone()),
        _ => map,
    }
}
