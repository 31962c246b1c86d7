//! The verbs on objects: from a request that may happen to an answer.

mod autoscaler;
mod binding;
mod collection;
mod commit;
mod conform;
mod continue_token;
mod create;
mod delete;
mod deletion;
mod eviction;
mod field_selector;
mod get;
mod input;
mod list;
mod log_options;
mod metrics;
mod names;
mod node;
mod options;
mod ownership;
mod patch;
mod prepare;
mod render;
mod route;
mod scale;
mod scope;
mod selector;
mod signals;
mod splice;
mod storage;
mod stored;
mod token;
mod update;
mod versions;
mod view;
mod watch;
mod written;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use continue_token::ContinueToken;
pub(crate) use field_selector::FieldSelector;
pub use node::{NodeProxy, NodeProxyError, PodPlace};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use options::{DeleteOptions, ListOptions, WriteOptions};
pub(crate) use prepare::completed;
pub(crate) use route::{add_warnings, handle};
pub(crate) use scope::Scope;
pub(crate) use selector::LabelSelector;
pub(crate) use splice::into_metadata;
pub(crate) use storage::prefix;
pub(crate) use versions::{convert, from_storage};
