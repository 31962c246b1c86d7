//! Who owns which field: `metadata.managedFields`, kept on every write, and server-side apply.
//!
//! A write is described by a [`Write`]: who writes, through which version and subresource, what the type looks like.
//! [`update`] follows a write that already has its result; [`apply`] makes the result from a configuration.
//!
//! ```
//! use serde_json::json;
//! use windlass_merge::OpenApiShape;
//! use windlass_merge::managed::{self, ApplyError, Manager, Write};
//!
//! let shape = OpenApiShape::new(json!({"properties": {"data": {"additionalProperties": {"type": "string"}}}}));
//! let time = "2026-01-02T03:04:05Z".parse().expect("a time");
//! let by = |name| Write::new(Manager { name, api_version: "v1", subresource: "", time }, Some(&shape));
//!
//! let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
//! let live = managed::apply(&by("alice"), None, &config, false).expect("a new object has no conflicts");
//!
//! let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "2"}});
//! let Err(ApplyError::Conflicts(conflicts)) = managed::apply(&by("bob"), Some(&live), &config, false) else {
//!     panic!("alice owns .data.a");
//! };
//! assert_eq!(conflicts.to_string(), r#"Apply failed with 1 conflict: conflict with "alice": .data.a"#);
//! ```

mod apply;
mod cap;
mod conflict;
mod entry;
mod last_applied;
mod object;
mod prune;
mod transfer;
mod update;
mod write;

pub use apply::{ApplyError, apply};
pub use conflict::{Conflict, Conflicts};
pub use entry::{Entry, EntryError, Operation, decode, encode};
pub use update::{is_same, update};
pub use write::{Convert, ConvertError, Manager, Versioned, Write};
