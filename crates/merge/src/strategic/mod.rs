//! Strategic merge patch: a merge patch that knows how the lists of a type are merged, and has directives.
//!
//! ```
//! use serde_json::json;
//! use windlass_merge::{OpenApiShape, strategic};
//!
//! let pod = OpenApiShape::new(json!({"properties": {"containers": {
//!     "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
//! }}}));
//! let live = json!({"containers": [{"name": "web", "image": "nginx:1"}, {"name": "log", "image": "fluent"}]});
//! let patch = json!({"containers": [{"name": "web", "image": "nginx:2"}, {"name": "log", "$patch": "delete"}]});
//! let patched = strategic::apply(&live, &patch, Some(&pod))?;
//! assert_eq!(patched, json!({"containers": [{"name": "web", "image": "nginx:2"}]}));
//! # Ok::<(), windlass_merge::PatchError>(())
//! ```

mod directive;
mod list;
mod map;
mod sequence;

pub use map::apply;
