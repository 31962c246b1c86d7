//! The plan of a Deployment, written to the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use kube::ResourceExt;
use kube::api::Patch;
use serde_json::json;
use windlass_runtime::{Error, Event};

use super::plan::Plan;
use super::scale::{self, Scale};
use super::{revision, status, template};
use crate::actor::{Actor, exists_already, message, namespace_leaves};
use crate::owners;

/// Writes the plan: ReplicaSets first, so that a crash leaves a status that is behind and never one that is ahead.
pub(crate) async fn act(
    actor: &Actor,
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    mut plan: Plan,
) -> Result<(), Error> {
    let mut failure = None;
    if let Some(set) = plan.create.take() {
        actor.check_current(deployment).await?;
        failure = create(actor, deployment, &set, &mut plan.status).await.err();
    }
    resize(actor, deployment, sets, &plan).await?;
    for set in sets.iter().filter(|set| plan.delete.contains(&set.name_any())) {
        actor.delete(&**set).await?;
    }
    let deployment = match plan.revision.filter(|_| failure.is_none()) {
        Some(number) => annotate(actor, deployment, number).await?,
        None => deployment.clone(),
    };
    if deployment.status.as_ref() != Some(&plan.status) {
        actor.replace_status(&Deployment { status: Some(plan.status), ..deployment }).await?;
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Makes the new ReplicaSet. A name that somebody else has makes the next attempt take another.
async fn create(
    actor: &Actor,
    deployment: &Deployment,
    set: &ReplicaSet,
    status: &mut DeploymentStatus,
) -> Result<(), kube::Error> {
    let error = match actor.create(set).await {
        Ok(set) => {
            tell(actor, deployment, &Scale { name: set.name_any(), from: 0, to: scale::size(&set) });
            return Ok(());
        }
        Err(error) => error,
    };
    if namespace_leaves(&error) {
        return Ok(());
    }
    if exists_already(&error) {
        let taken = actor.api::<ReplicaSet>(deployment.namespace().as_deref()).get_opt(&set.name_any()).await?;
        if !taken.is_some_and(|taken| is_ours(deployment, &taken)) {
            status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
        }
        return Err(error);
    }
    let text = format!("Failed to create new replica set \"{}\": {}", set.name_any(), message(&error));
    actor.tell(deployment, Event::warning("ReplicaSetCreateError", text.clone()));
    status::note(deployment, status, ("False", "ReplicaSetCreateError"), &text, actor.clock.now());
    Err(error)
}

fn is_ours(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
    let present = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let same = wanted.zip(present).is_some_and(|(wanted, present)| template::same(wanted, present));
    same && owners::is_controlled_by(&set.metadata, &deployment.uid().unwrap_or_default())
}

/// Writes each ReplicaSet that changes, once, with its new annotations and size.
async fn resize(
    actor: &Actor,
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    plan: &Plan,
) -> Result<(), kube::Error> {
    let before: BTreeMap<String, &ReplicaSet> = sets.iter().map(|set| (set.name_any(), &**set)).collect();
    let mut after: BTreeMap<String, ReplicaSet> = BTreeMap::new();
    if let Some(set) = &plan.update {
        after.insert(set.name_any(), (**set).clone());
    }
    for scale in &plan.scale {
        let Some(present) = before.get(&scale.name) else { continue };
        let set = after.entry(scale.name.clone()).or_insert_with(|| (*present).clone());
        set.spec.get_or_insert_default().replicas = Some(scale.to);
        scale::annotate(deployment, set);
    }
    for (name, set) in after {
        if before.get(&name).is_some_and(|present| **present != set) {
            actor.replace(&set).await?;
        }
        if let Some(scale) = plan.scale.iter().find(|scale| scale.name == name) {
            tell(actor, deployment, scale);
        }
    }
    Ok(())
}

async fn annotate(actor: &Actor, deployment: &Deployment, number: i64) -> Result<Deployment, kube::Error> {
    let number = number.to_string();
    if deployment.annotations().get(revision::REVISION) == Some(&number) {
        return Ok(deployment.clone());
    }
    let patch = json!({"metadata": {"uid": deployment.uid(), "annotations": {revision::REVISION: number}}});
    let api = actor.api::<Deployment>(deployment.namespace().as_deref());
    let patched = api.patch(&deployment.name_any(), &actor.patch(), &Patch::Merge(&patch)).await?;
    Ok(Deployment { status: deployment.status.clone(), ..patched })
}

fn tell(actor: &Actor, deployment: &Deployment, scale: &Scale) {
    if scale.from == scale.to {
        return;
    }
    let direction = if scale.to > scale.from { "up" } else { "down" };
    let text = format!("Scaled {direction} replica set {} from {} to {}", scale.name, scale.from, scale.to);
    actor.tell(deployment, Event::normal("ScalingReplicaSet", text));
}
