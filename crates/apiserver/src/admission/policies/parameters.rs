//! The parameters that a binding gives to its policy.

use serde_json::Value;
use windlass_store::Store;

use super::{binding::ParameterReference, policy::ParameterKind};
use crate::{
    registry::{Registry, Served},
    rest,
    webhook::Webhooks,
};

/// Where parameters are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) store: &'a Store,
    pub(super) registry: &'a Registry,
    pub(super) webhooks: &'a Webhooks,
}

/// The parameters, one evaluation for each; `Null` stands for none where none are wanted.
///
/// # Errors
/// Why there are none although there should be.
pub(super) async fn collect(
    sources: Sources<'_>,
    kind: Option<&ParameterKind>,
    reference: Option<&ParameterReference>,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(vec![Value::Null]) };
    let (group, version) = kind.api_version.rsplit_once('/').unwrap_or(("", &kind.api_version));
    let served = sources.registry.by_kind(group, version, &kind.kind);
    let served =
        served.ok_or_else(|| format!("paramKind kind `{}, Kind={}` not known", kind.api_version, kind.kind))?;
    let namespace = place(&served, reference, namespace)?;
    let prefix = rest::prefix(&served, namespace);
    let snapshot = sources.store.snapshot();
    let stored: Vec<Value> = match &reference.name {
        Some(name) => snapshot.get(&format!("{prefix}{name}")).into_iter().filter_map(read).collect(),
        None => snapshot.range(&prefix, None).filter_map(|(_, entry)| read(entry)).collect(),
    };
    let found = rest::from_storage(sources.webhooks, &served, stored).await.map_err(|error| error.message)?;
    let selected = |object: &Value| reference.selector.as_ref().is_none_or(|selector| selector.matches(object));
    let found: Vec<Value> = found.into_iter().filter(selected).collect();
    if found.is_empty() && reference.is_required {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found)
}

fn read(entry: &windlass_store::Entry) -> Option<Value> {
    serde_json::from_slice(&entry.value).ok()
}

/// The namespace of the parameters.
fn place<'a>(served: &Served, reference: &'a ParameterReference, namespace: &'a str) -> Result<&'a str, String> {
    match (served.namespaced, reference.namespace.as_deref()) {
        (false, None) => Ok(""),
        (false, Some(_)) => Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()),
        (true, Some(own)) => Ok(own),
        (true, None) if namespace.is_empty() => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned())
        }
        (true, None) => Ok(namespace),
    }
}
