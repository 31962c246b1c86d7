//! What an autoscaler scales: anything with a scale.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use kube::core::DynamicObject;

use crate::actor::{Actor, is_conflict, message};
use crate::kinds::{Kinds, group_of};

/// How often a change is tried while others change the same object.
const ATTEMPTS_MAX: usize = 5;

/// The target of an autoscaler.
pub(super) struct Target {
    api: Api<DynamicObject>,
    pub(super) scale: Scale,
}

impl Target {
    /// Finds the target and reads its scale.
    ///
    /// # Errors
    /// The sentence says what is in the way.
    pub(super) async fn find(
        actor: &Actor,
        kinds: &Kinds,
        autoscaler: &HorizontalPodAutoscaler,
    ) -> Result<Self, String> {
        let reference = &autoscaler.spec.scale_target_ref;
        let group = group_of(reference.api_version.as_deref().unwrap_or_default());
        let kind = kinds.find(group, &reference.kind);
        let kind = kind.ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", reference.kind))?;
        let api = kind.api(&actor.client, autoscaler.metadata.namespace.as_deref());
        let scale = api.get_scale(&reference.name).await.map_err(|error| message(&error))?;
        Ok(Self { api, scale })
    }

    /// How many replicas it should have.
    pub(super) fn wanted(&self) -> i32 {
        self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
    }

    /// How many it says it has.
    pub(super) fn present(&self) -> i32 {
        self.scale.status.as_ref().map_or(0, |status| status.replicas)
    }

    /// Which Pods it has.
    pub(super) fn selector(&self) -> &str {
        self.scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default()
    }

    /// Makes it have so many.
    ///
    /// # Errors
    /// Those of the API, conflicts only after some attempts.
    pub(super) async fn set(&mut self, actor: &Actor, replicas: i32) -> Result<(), kube::Error> {
        let name = self.scale.metadata.name.clone().unwrap_or_default();
        for _ in 1..ATTEMPTS_MAX {
            match self.write(actor, &name, replicas).await {
                Err(error) if is_conflict(&error) => self.scale = self.api.get_scale(&name).await?,
                outcome => return outcome,
            }
        }
        self.write(actor, &name, replicas).await
    }

    async fn write(&mut self, actor: &Actor, name: &str, replicas: i32) -> Result<(), kube::Error> {
        self.scale.spec.get_or_insert_default().replicas = Some(replicas);
        self.api.replace_scale(name, &actor.post(), &self.scale).await.map(drop)
    }
}
