//! What a type is in JSON, as far as its name tells.

use syn::{GenericArgument, PathArguments, Type};

/// What a value is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Number,
    Text,
    Truth,
    List,
    Map,
    /// A type whose name says nothing.
    Unknown,
}

impl Shape {
    /// The shape of values of a type; of what is in it for an `Option` or a `Box`.
    pub(super) fn of(type_: &Type) -> Self {
        let Type::Path(path) = type_ else { return Self::Unknown };
        let Some(last) = path.path.segments.last() else { return Self::Unknown };
        match last.ident.to_string().as_str() {
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" | "f32" | "f64" => {
                Self::Number
            }
            "String" => Self::Text,
            "bool" => Self::Truth,
            "Vec" | "BTreeSet" | "HashSet" | "VecDeque" => Self::List,
            "BTreeMap" | "HashMap" => Self::Map,
            "Option" | "Box" | "Arc" | "Rc" => inner(&last.arguments).map_or(Self::Unknown, Self::of),
            _ => Self::Unknown,
        }
    }

    /// The shape of the items of a list, or the values of a map.
    pub(super) fn of_items(type_: &Type) -> Self {
        let Type::Path(path) = type_ else { return Self::Unknown };
        let Some(last) = path.path.segments.last() else { return Self::Unknown };
        match last.ident.to_string().as_str() {
            "Option" | "Box" | "Arc" | "Rc" => inner(&last.arguments).map_or(Self::Unknown, Self::of_items),
            _ => inner(&last.arguments).map_or(Self::Unknown, Self::of),
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Truth => "a truth value",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Unknown => "something else",
        }
    }
}

/// The last type argument.
fn inner(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().rev().find_map(|argument| match argument {
        GenericArgument::Type(type_) => Some(type_),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_known_by_name() {
        let rows = [
            ("u32", Shape::Number, Shape::Unknown),
            ("Option<String>", Shape::Text, Shape::Unknown),
            ("std::vec::Vec<Option<u8>>", Shape::List, Shape::Number),
            ("Option<BTreeMap<String, bool>>", Shape::Map, Shape::Truth),
            ("Mode", Shape::Unknown, Shape::Unknown),
        ];
        for (name, of, of_items) in rows {
            let type_: Type = syn::parse_str(name).unwrap();
            assert_eq!((Shape::of(&type_), Shape::of_items(&type_)), (of, of_items), "{name}");
        }
    }
}
