//! The types of expressions, as far as they are certain.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::declaration::{Declaration, Shape};

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Anything: not known before it is there.
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Timestamp,
    Duration,
    /// A type itself.
    Kind,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// What a schema declares.
    Object(Arc<Declaration>),
    /// What has these members and no others.
    Members(Arc<BTreeMap<String, Type>>),
    Optional(Arc<Type>),
    /// A type of a library.
    Named(&'static str),
}

impl Type {
    /// The type of what is declared.
    pub(super) fn of(declaration: &Arc<Declaration>) -> Self {
        match &declaration.shape {
            Shape::Scalar(found) => found.clone(),
            Shape::List(items) => Self::list(Self::of(items)),
            Shape::Map(values) => Self::Map(Arc::new(Self::Text), Arc::new(Self::of(values))),
            Shape::Object(_) => Self::Object(Arc::clone(declaration)),
        }
    }

    /// A list of such items.
    pub(super) fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    /// Such a value, or none.
    pub(super) fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Whether it is a number.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether every value of it is of one size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Timestamp | Self::Duration => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether enough is known of it to say that it is none of another type.
    pub(super) fn is_certain(&self) -> bool {
        self.is_scalar() && !matches!(self, Self::Optional(_))
            || matches!(self, Self::Text | Self::Bytes | Self::List(_) | Self::Map(..))
    }

    /// The types of keys and of values, or of indices and of items.
    pub(super) fn members(&self) -> (Self, Self) {
        match self {
            Self::List(items) => (Self::Int, (**items).clone()),
            Self::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            _ => (Self::Dyn, Self::Dyn),
        }
    }

    /// The type of what may be the one or the other; an empty list or map says nothing of what would be in it.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::List(one), Self::List(other)) => Self::list(joined_parts(&one, &other)),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                Self::Map(joined_parts(&key, &other_key).into(), joined_parts(&value, &other_value).into())
            }
            _ => Self::Dyn,
        }
    }
}

fn joined_parts(one: &Type, other: &Type) -> Type {
    match (one, other) {
        (Type::Dyn, known) | (known, Type::Dyn) => known.clone(),
        _ => one.clone().join(other.clone()),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Members(_) => out.write_str("dyn"),
            Self::Bool => out.write_str("bool"),
            Self::Int => out.write_str("int"),
            Self::Uint => out.write_str("uint"),
            Self::Double => out.write_str("double"),
            Self::Text => out.write_str("string"),
            Self::Bytes => out.write_str("bytes"),
            Self::Null => out.write_str("null"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::Duration => out.write_str("duration"),
            Self::Kind => out.write_str("type"),
            Self::List(items) => write!(out, "list({items})"),
            Self::Map(keys, values) => write!(out, "map({keys}, {values})"),
            Self::Object(_) => out.write_str("object"),
            Self::Optional(inner) => write!(out, "optional_type({inner})"),
            Self::Named(name) => out.write_str(name),
        }
    }
}
