//! The shape of a whole object: the caller's type, with the metadata that every object has.

use std::sync::LazyLock;

use serde_json::Value;

use crate::shape::{ListType, MapType, Member, PatchStrategy, Shape, ValueType};

static OWNER_KEYS: LazyLock<[String; 1]> = LazyLock::new(|| ["uid".to_owned()]);

const METADATA_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The type of an object or of something inside it.
#[derive(Clone, Debug)]
pub(super) enum ObjectShape<S> {
    Root(Option<S>),
    Metadata(Metadata),
    Inside(S),
}

/// Parts of the metadata that every object has, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metadata {
    Whole,
    Strings,
    Text,
    Finalizers,
    Owners,
    Owner,
    Single,
}

impl<S: Shape> ObjectShape<S> {
    pub(super) const fn root(shape: Option<S>) -> Self {
        Self::Root(shape)
    }
}

impl<S: Shape> Shape for ObjectShape<S> {
    fn field(&self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Root(_), "metadata") => Some(Self::Metadata(Metadata::Whole)),
            (Self::Root(_), "apiVersion" | "kind") => Some(Self::Metadata(Metadata::Single)),
            (Self::Root(shape), _) => shape.as_ref()?.field(name).map(Self::Inside),
            (Self::Metadata(Metadata::Whole), "labels" | "annotations") => Some(Self::Metadata(Metadata::Strings)),
            (Self::Metadata(Metadata::Whole), "finalizers") => Some(Self::Metadata(Metadata::Finalizers)),
            (Self::Metadata(Metadata::Whole), "ownerReferences") => Some(Self::Metadata(Metadata::Owners)),
            (Self::Metadata(Metadata::Strings), _) => Some(Self::Metadata(Metadata::Text)),
            (Self::Metadata(Metadata::Whole), "name" | "namespace" | "generateName" | "resourceVersion" | "uid") => {
                Some(Self::Metadata(Metadata::Text))
            }
            (Self::Metadata(_), _) => Some(Self::Metadata(Metadata::Single)),
            (Self::Inside(shape), _) => shape.field(name).map(Self::Inside),
        }
    }

    fn membership(&self, name: &str) -> Member {
        match self {
            Self::Root(_) if matches!(name, "apiVersion" | "kind" | "metadata") => Member::Declared,
            Self::Root(shape) => shape.as_ref().map_or(Member::Free, |shape| shape.membership(name)),
            Self::Metadata(Metadata::Strings) => Member::Free,
            Self::Metadata(Metadata::Whole) if !METADATA_FIELDS.contains(&name) => Member::Undeclared,
            Self::Metadata(_) => Member::Declared,
            Self::Inside(shape) => shape.membership(name),
        }
    }

    fn item(&self) -> Option<Self> {
        match self {
            Self::Root(_) => None,
            Self::Metadata(Metadata::Owners) => Some(Self::Metadata(Metadata::Owner)),
            Self::Metadata(Metadata::Finalizers) => Some(Self::Metadata(Metadata::Text)),
            Self::Metadata(_) => Some(Self::Metadata(Metadata::Single)),
            Self::Inside(shape) => shape.item().map(Self::Inside),
        }
    }

    fn map_type(&self) -> MapType {
        match self {
            Self::Metadata(Metadata::Owner) => MapType::Atomic,
            Self::Inside(shape) => shape.map_type(),
            _ => MapType::Granular,
        }
    }

    fn list_type(&self) -> ListType<'_> {
        match self {
            Self::Metadata(Metadata::Finalizers) => ListType::Set,
            Self::Metadata(Metadata::Owners) => ListType::Map(&*OWNER_KEYS),
            Self::Inside(shape) => shape.list_type(),
            _ => ListType::Atomic,
        }
    }

    fn field_default(&self, name: &str) -> Option<Value> {
        match self {
            Self::Inside(shape) => shape.field_default(name),
            _ => None,
        }
    }

    fn patch_strategy(&self) -> PatchStrategy<'_> {
        match self {
            Self::Inside(shape) => shape.patch_strategy(),
            _ => PatchStrategy::default(),
        }
    }

    fn value_type(&self) -> Option<ValueType> {
        match self {
            Self::Root(_) | Self::Metadata(Metadata::Whole | Metadata::Strings | Metadata::Owner) => {
                Some(ValueType::Map)
            }
            Self::Metadata(Metadata::Finalizers | Metadata::Owners) => Some(ValueType::List),
            Self::Metadata(Metadata::Text) => Some(ValueType::String),
            Self::Metadata(Metadata::Single) => None,
            Self::Inside(shape) => shape.value_type(),
        }
    }
}
