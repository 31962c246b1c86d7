//! The types of expressions.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::declaration::{Declaration, Shape};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Anything: not known before it is there.
    Dyn,
    /// The type of what is wrong; it fits everything, so that one fault is told once.
    Fault,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Timestamp,
    Duration,
    /// A type itself: that of such values.
    Kind(Arc<Type>),
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// What has the fields of a structure.
    Object(Arc<Structure>),
    Optional(Arc<Type>),
    /// A type of a library.
    Named(&'static str),
    /// A type that is to be found out.
    Parameter(u32),
}

/// A type with fields; its name tells it from all others.
#[derive(Clone, Debug)]
pub(super) struct Structure {
    pub(super) name: String,
    pub(super) fields: Fields,
}

/// The fields of a structure.
#[derive(Clone, Debug)]
pub(super) enum Fields {
    /// Those that a schema declares.
    Declared(Arc<Declaration>),
    /// These.
    Listed(BTreeMap<String, Type>),
    /// Any: an object that a mutation makes.
    Any,
}

impl PartialEq for Structure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Structure {
    /// The type of a field, if there is such a field.
    pub(super) fn field(&self, name: &str) -> Option<Type> {
        match &self.fields {
            Fields::Declared(declaration) => match &declaration.shape {
                Shape::Object(fields) => Some(Type::of(fields.get(name)?, &format!("{}.{name}", self.name))),
                _ => None,
            },
            Fields::Listed(fields) => fields.get(name).cloned(),
            Fields::Any => Some(Type::Dyn),
        }
    }
}

impl Type {
    /// The type of what is declared, with the name that it gets if it has fields.
    pub(super) fn of(declaration: &Arc<Declaration>, name: &str) -> Self {
        match &declaration.shape {
            Shape::Scalar(found) => found.clone(),
            Shape::List(items) => Self::list(Self::of(items, &format!("{name}.@idx"))),
            Shape::Map(values) => Self::map(Self::Text, Self::of(values, &format!("{name}.@elem"))),
            Shape::Object(_) => Self::Object(Arc::new(Structure {
                name: name.to_owned(),
                fields: Fields::Declared(Arc::clone(declaration)),
            })),
        }
    }

    /// What has these fields and no others.
    pub(super) fn structure(name: &str, fields: impl IntoIterator<Item = (String, Self)>) -> Self {
        let fields = Fields::Listed(fields.into_iter().collect());
        Self::Object(Arc::new(Structure { name: name.to_owned(), fields }))
    }

    /// A list of such items.
    pub(super) fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    /// A map of such keys and values.
    pub(super) fn map(keys: Self, values: Self) -> Self {
        Self::Map(Arc::new(keys), Arc::new(values))
    }

    /// Such a value, or none.
    pub(super) fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Whether every value of it is of one size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Timestamp | Self::Duration => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether it fits everything.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Fault)
    }

    /// Whether null is a value of it.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Timestamp | Self::Duration | Self::Object(_) | Self::Optional(_) | Self::Named(_)
        )
    }

    /// The types of keys and of values, or of indices and of items.
    pub(super) fn members(&self) -> (Self, Self) {
        match self {
            Self::List(items) => (Self::Int, (**items).clone()),
            Self::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            _ => (Self::Dyn, Self::Dyn),
        }
    }

    /// The types that it consists of.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(inner) | Self::Optional(inner) | Self::Kind(inner) => vec![inner],
            Self::Map(keys, values) => vec![keys, values],
            _ => Vec::new(),
        }
    }

    /// The same type of other parts.
    pub(super) fn with_parts(&self, mut change: impl FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(inner) => Self::list(change(inner)),
            Self::Optional(inner) => Self::optional(change(inner)),
            Self::Kind(inner) => Self::Kind(Arc::new(change(inner))),
            Self::Map(keys, values) => Self::map(change(keys), change(values)),
            other => other.clone(),
        }
    }

    /// The type of a variable of a policy with such a value: what has fields, and types of libraries, count as anything.
    pub(super) fn of_variable(&self) -> Self {
        match self {
            Self::List(_) | Self::Map(..) => self.with_parts(Self::of_variable),
            scalar if scalar.is_scalar() && !matches!(scalar, Self::Optional(_)) => scalar.clone(),
            Self::Text | Self::Bytes | Self::Null => self.clone(),
            _ => Self::Dyn,
        }
    }

    /// The type as it is called where a result is of a wrong type.
    pub(super) fn result_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::List(items) => format!("list({})", items.result_name()),
            Self::Map(keys, values) => format!("map({}, {})", keys.result_name(), values.result_name()),
            Self::Optional(inner) => format!("optional_type({})", inner.result_name()),
            Self::Kind(inner) => format!("type({})", inner.result_name()),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => out.write_str("dyn"),
            Self::Fault => out.write_str("!error!"),
            Self::Bool => out.write_str("bool"),
            Self::Int => out.write_str("int"),
            Self::Uint => out.write_str("uint"),
            Self::Double => out.write_str("double"),
            Self::Text => out.write_str("string"),
            Self::Bytes => out.write_str("bytes"),
            Self::Null => out.write_str("null"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::Duration => out.write_str("duration"),
            Self::Kind(inner) => write!(out, "type({inner})"),
            Self::List(items) => write!(out, "list({items})"),
            Self::Map(keys, values) => write!(out, "map({keys}, {values})"),
            Self::Object(structure) => out.write_str(&structure.name),
            Self::Optional(inner) => write!(out, "optional_type({inner})"),
            Self::Named(name) => out.write_str(name),
            Self::Parameter(number) => write!(out, "_var{number}"),
        }
    }
}
