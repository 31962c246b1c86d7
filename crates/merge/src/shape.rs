//! What the merge algorithms must know of a type: how its maps and lists are merged.

use std::fmt;

use serde_json::Value;

/// The merge facts of one type, as a schema that the caller owns can answer them.
///
/// A shape is a cheap handle: implementations are references or reference-counted pointers. Where no shape is known at
/// all (`None` in place of a shape), maps are merged member by member and lists have one owner.
pub trait Shape: Clone {
    /// The shape of the member `name`, or of the values where every key is allowed; `None` where nothing is known.
    fn field(&self, name: &str) -> Option<Self>;

    /// How the member `name` comes to be allowed in a map of this shape.
    ///
    /// Members that are [`Free`](Member::Free) exist by being set: `{"app": "web"}` in labels owns `app` as such, while
    /// the member `spec` of a Pod is only a place where owned things are.
    fn membership(&self, name: &str) -> Member;

    /// The shape of the items of a list; `None` where nothing is known.
    fn item(&self) -> Option<Self>;

    /// Whether a map of this shape is owned member by member or as one value.
    fn map_type(&self) -> MapType;

    /// How the items of a list of this shape are told apart.
    fn list_type(&self) -> ListType<'_>;

    /// The default of the member `name`, used where a key of an associative list is left out.
    fn field_default(&self, name: &str) -> Option<Value>;

    /// How a strategic merge patch treats a value of this shape.
    fn patch_strategy(&self) -> PatchStrategy<'_>;

    /// What a value of this shape must be; `None` where several are allowed or nothing is known.
    fn value_type(&self) -> Option<ValueType>;
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Text.
    String,
    /// A number, whole or not.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A map.
    Map,
    /// A list.
    List,
    /// Anything but a map or a list.
    Scalar,
}

impl ValueType {
    /// The type that a schema means with the word of its `type` and its `format`. Text in a format, such as a time, may
    /// be written in other ways and is not held to be text, but to be one value.
    pub fn of_schema(word: &str, format: Option<&str>) -> Option<Self> {
        match (word, format.unwrap_or_default()) {
            ("string", "" | "byte") => Some(Self::String),
            ("string", _) => Some(Self::Scalar),
            ("integer" | "number", "int-or-string") => None,
            ("integer" | "number", _) => Some(Self::Number),
            ("boolean", _) => Some(Self::Boolean),
            ("object", _) => Some(Self::Map),
            ("array", _) => Some(Self::List),
            _ => None,
        }
    }

    /// Whether a value is of this type; nothing (`null`) is of every type.
    pub fn fits(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(_) => matches!(self, Self::String | Self::Scalar),
            Value::Number(_) => matches!(self, Self::Number | Self::Scalar),
            Value::Bool(_) => matches!(self, Self::Boolean | Self::Scalar),
            Value::Object(_) => self == Self::Map,
            Value::Array(_) => self == Self::List,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::String => "string",
            Self::Number => "numeric (int or float)",
            Self::Boolean => "boolean",
            Self::Map => "map",
            Self::List => "list",
            Self::Scalar => "any scalar",
        })
    }
}

/// How a member of a map comes to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The type lists it by name (`properties`).
    Declared,
    /// The type allows any name (`additionalProperties`, unknown fields are preserved, nothing is said of members).
    Free,
    /// The type does not have it.
    Undeclared,
}

/// Whether a map is owned member by member or as one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Every member has its own owner.
    Granular,
    /// The map has one owner.
    Atomic,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType<'a> {
    /// The list has one owner.
    Atomic,
    /// Items are scalars and are their own identity.
    Set,
    /// Items are maps and are identified by these members.
    Map(&'a [String]),
}

/// How a strategic merge patch treats a value.
#[expect(clippy::struct_excessive_bools, reason = "independent words of one annotation")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy<'a> {
    /// A list is merged with the live one instead of replacing it.
    pub merge: bool,
    /// The member that identifies the items of a merged list of maps.
    pub merge_key: Option<&'a str>,
    /// Members that the patch does not retain by name are removed (`retainKeys`).
    pub retain_keys: bool,
    /// A map is replaced as a whole.
    pub replace: bool,
}
