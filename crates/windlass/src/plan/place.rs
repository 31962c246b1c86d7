//! Where an object is, and what a plan makes of it.

use serde_json::Value;
use windlass_runtime::tap::Call;

/// An object of the API, by where it is; all versions of its group are the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) group: String,
    /// The plural.
    pub(super) resource: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl Place {
    /// The place of the object that a call names.
    pub(super) fn of(call: &Call) -> Option<Self> {
        call.name.as_deref().map(|name| Self::named(call, name))
    }

    /// The place of the object in the body of a call that creates it; none if the API is to give it a name.
    pub(super) fn in_body(call: &Call, body: &[u8]) -> Option<Self> {
        let object: Value = serde_json::from_slice(body).ok().filter(|_| call.verb == "create")?;
        meta(&object, "name").map(|name| Self::named(call, name))
    }

    /// The place of an object called `name` in the collection of a call.
    pub(super) fn named(call: &Call, name: &str) -> Self {
        Self {
            group: call.group.clone(),
            resource: call.resource.clone(),
            namespace: call.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Whether it is in the collection of a call.
    pub(super) fn is_in(&self, call: &Call) -> bool {
        let in_namespace = call.namespace.is_none() || call.namespace == self.namespace;
        self.group == call.group && self.resource == call.resource && in_namespace
    }
}

/// An object that the plan changes.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As it is in the cluster; none if it is not there.
    pub(super) before: Option<Value>,
    /// As it would be; none if it would not be there.
    pub(super) now: Option<Value>,
    /// Whether it is what the person asked for, rather than what the operator did.
    pub(super) asked: bool,
}

/// An object that is being deleted and that nothing holds any more is gone.
pub(super) fn unless_gone(object: Value) -> Option<Value> {
    let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let is_going = !object["metadata"]["deletionTimestamp"].is_null();
    (!is_going || is_held).then_some(object)
}

/// A text of the metadata.
pub(super) fn meta<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object["metadata"][field].as_str()
}
