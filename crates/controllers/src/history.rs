//! ControllerRevisions, written to the API.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;
use windlass_runtime::Error;

use crate::actor::{Actor, Namespaced};
use crate::revisions::{self, Step};

/// Sees that the revision of `template` exists and is the newest.
pub(crate) async fn ensure<K: Namespaced>(
    actor: &Actor,
    owner: &K,
    template: &PodTemplateSpec,
    known: &[Arc<ControllerRevision>],
    collisions: i32,
) -> Result<Arc<ControllerRevision>, Error> {
    let known: Vec<&ControllerRevision> = known.iter().map(|revision| &**revision).collect();
    let revision = match revisions::current(owner, template, &known, collisions) {
        Step::Keep(revision) => *revision,
        // An owner that leaves makes no history.
        step if owner.meta().deletion_timestamp.is_some() => step.revision().clone(),
        Step::Renew(revision) => actor.replace(&*revision).await?,
        Step::Create(revision) => {
            actor.check_current(owner).await?;
            actor.create(&*revision).await?
        }
    };
    Ok(Arc::new(revision))
}

/// Deletes the oldest revisions beyond `limit` that are not in use.
pub(crate) async fn trim(
    actor: &Actor,
    known: &[Arc<ControllerRevision>],
    in_use: &[String],
    limit: i32,
) -> Result<(), Error> {
    let all: Vec<&ControllerRevision> = known.iter().map(|revision| &**revision).collect();
    let surplus = revisions::beyond_history(&all, in_use, usize::try_from(limit).unwrap_or(0));
    for revision in known.iter().filter(|revision| surplus.contains(&revision.name_any())) {
        actor.delete(&**revision).await?;
    }
    Ok(())
}
