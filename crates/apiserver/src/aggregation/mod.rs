//! APIServices: which server answers for a group and version.

mod availability;
mod description;
mod extension;
mod local;
mod remote;

pub(crate) use availability::keep as keep_remote;
pub(crate) use extension::Extensions;
pub use extension::FrontProxy;
pub(crate) use local::{builtin_writes, keep};
pub(crate) use remote::{Remote, Remotes};

/// Where APIServices are stored.
const PREFIX: &str = "/apiregistration.k8s.io/apiservices/";
