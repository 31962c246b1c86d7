//! Writes the status of what is done once, and then is over.

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_core::{CustomResource, Statement, Status, condition, names};
use windlass_runtime::{Context, Error, Object};

use super::kind::Phase;

/// How far something is, with a word and a sentence for people.
pub(super) struct News<'a> {
    pub(super) phase: Phase,
    pub(super) reason: &'a str,
    pub(super) message: String,
}

/// Writes `status` with the conditions that follow, if it is another one than before.
pub(super) async fn report<K>(
    object: &K,
    mut status: Status<K::Status>,
    news: News<'_>,
    cx: &Context<K>,
) -> Result<(), Error>
where
    K: CustomResource + Object + kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let (generation, now) = (object.meta().generation, cx.clock().now());
    status.observed_generation = generation;
    let is_ready = news.phase == Phase::Succeeded;
    let ready = Statement::new(names::condition::READY, is_ready, news.reason, news.message.clone());
    let progressing = Statement::new(names::condition::PROGRESSING, !news.phase.is_over(), news.reason, news.message);
    for statement in [ready, progressing] {
        condition::set(&mut status.conditions, statement, generation, now);
    }
    if object.status() == Some(&status) {
        return Ok(());
    }
    let api: Api<K> = Api::namespaced(cx.client(), &object.namespace().unwrap_or_default());
    let params = PatchParams { field_manager: Some(cx.name().to_owned()), ..PatchParams::default() };
    api.patch_status(&object.name_any(), &params, &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}
