//! The table of kinds: discovery facts, structural schemas, merge keys, protobuf descriptors, defaults.
//!
//! [`builtin`] answers for the kinds of the pinned Kubernetes release; [`Schema::from_json_schema_props`] makes the same
//! handle from the schema of a custom resource. Tables are parsed when they are first asked, a definition at a time.

mod conform;
mod convert;
mod defaulting;
mod defaults;
mod definition;
pub mod duration;
mod field;
mod gojson;
mod kind;
pub mod kubelet;
pub mod names;
mod node;
mod place;
pub mod pod_resources;
pub mod protobuf;
mod prune;
pub mod quantity;
pub mod quota;
mod rules;
mod schema;
mod selectable;
mod shape;
mod structs;
mod structural;
mod table;
mod validate;

pub use conform::{Conformed, TypeError, conform, json_type, settle};
pub use convert::{autoscaler_to_v1, autoscaler_to_v2};
pub use defaults::defaults;
pub use definition::{definition, definitions, references};
pub use field::{ErrorKind, FieldError};
pub use kind::{Column, Kind, Subresource};
pub use rules::{
    APP_ARMOR, app_armor_profile, builtin_status_warnings, builtin_warnings, validate_builtin, validate_builtin_status,
    validate_metadata, validate_pod_joining, validate_pod_resize, validate_webhook_client,
};
pub use schema::Schema;
pub use table::{Table, builtin, metrics};

/// The Kubernetes release that the tables were generated from.
pub const KUBERNETES_VERSION: &str = "1.36.3";
