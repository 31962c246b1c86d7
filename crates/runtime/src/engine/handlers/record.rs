//! Writing progress down: in one annotation of the resource, never over what another process wrote.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_core::{CustomResource, names};

use crate::engine::dynamic_api;
use crate::key::ObjectKey;
use crate::reconcile::{Context, Error};

/// How often somebody else may be faster before the next look decides anew.
const CONFLICTS_MAX: usize = 5;

/// The annotation, as a resource has it.
pub(super) fn stored<'a, R: CustomResource>(resource: &'a R, operator: &str) -> Option<&'a str> {
    resource.meta().annotations.as_ref()?.get(&names::progress(operator)).map(String::as_str)
}

/// Whether the resource has the finalizer.
pub(super) fn has_finalizer<R: CustomResource>(resource: &R) -> bool {
    resource.meta().finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
}

/// Writes what is about to happen, and the finalizer if it is to be another. It fails if the resource is no longer as it was
/// seen: then another decision is due, perhaps by another process.
pub(super) async fn begin<R: CustomResource>(
    resource: &R,
    text: &str,
    finalizer: bool,
    cx: &Context<R>,
) -> Result<(), Error> {
    let meta = resource.meta();
    let mut metadata = json!({
        "annotations": {names::progress(cx.name()): text},
        "resourceVersion": meta.resource_version,
    });
    if finalizer != has_finalizer(resource) {
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.retain(|known| known != names::FINALIZER);
        if finalizer {
            finalizers.push(names::FINALIZER.to_owned());
        }
        metadata["finalizers"] = finalizers.into();
    }
    let patch = json!({"metadata": metadata});
    let name = meta.name.as_deref().unwrap_or_default();
    dynamic_api(resource, cx).patch(name, &params(cx), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Writes how it ended, if nobody else wrote progress since `begun`.
pub(super) async fn conclude<R: CustomResource>(
    resource: &R,
    begun: &str,
    text: &str,
    cx: &Context<R>,
) -> Result<(), Error> {
    let annotation = names::progress(cx.name());
    let api = dynamic_api(resource, cx);
    let name = resource.meta().name.clone().unwrap_or_default();
    // What was just written is in the cache; a change of the spec since then is ordinary.
    let mut meta = cx.cache().get(&ObjectKey::of(resource)).map(|seen| seen.meta().clone());
    let mut conflict = None;
    for _ in 0..CONFLICTS_MAX {
        let Some(live) = meta.filter(|live| live.uid == resource.meta().uid) else { return Ok(()) };
        if live.annotations.as_ref().and_then(|all| all.get(&annotation)).map(String::as_str) != Some(begun) {
            tracing::warn!(resource = %ObjectKey::of(resource), "Somebody else wrote the progress of handlers");
            return Ok(());
        }
        let metadata = json!({"annotations": {annotation.as_str(): text}, "resourceVersion": live.resource_version});
        let written = api.patch(&name, &params(cx), &Patch::Merge(&json!({"metadata": metadata}))).await;
        match written.map_err(Error::from) {
            Ok(_) => return Ok(()),
            Err(Error::Api(kube::Error::Api(status))) if status.code == 404 => return Ok(()),
            Err(error) if error.is_conflict() => conflict = Some(error),
            Err(error) => return Err(error),
        }
        meta = api.get_opt(&name).await?.map(|live| live.metadata);
    }
    conflict.map_or(Ok(()), Err)
}

fn params<R: CustomResource>(cx: &Context<R>) -> PatchParams {
    PatchParams { field_manager: Some(cx.name().to_owned()), ..PatchParams::default() }
}
