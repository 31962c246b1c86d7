//! APIServices: which server answers for a group and version.

mod local;

pub(crate) use local::{builtin_writes, keep};

/// Where APIServices are stored.
const PREFIX: &str = "/apiregistration.k8s.io/apiservices/";
