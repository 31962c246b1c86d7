//! What the engine does about upgrades in a pass.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::{CustomResource, Operator, Outcome, Readiness, World};

use super::super::Engine;
use super::super::report::Pass;
use super::{Way, event};
use crate::journal::{self, Turn};
use crate::reconcile::{Action, Context, Error};

/// A failure that was written down is acted on at once: what was written wakes the resource. This is for when it does not.
const ACT: Duration = Duration::from_secs(1);

impl<O: Operator> Engine<O> {
    /// What is wanted for the revision that was chosen.
    pub(in super::super) fn outcome(
        &self,
        resource: &O::Resource,
        way: Option<&Way<O::Resource>>,
        world: &World,
    ) -> Outcome<<O::Resource as CustomResource>::Status> {
        let Some(way) = way else { return self.operator.desired(resource, world) };
        match &way.pinned {
            Ok(pinned) => way.with_revisions(self.operator.desired(pinned, world), resource),
            Err(why) => Outcome::invalid(format!(
                "what was last known to be good cannot be read by this version of the operator, and all stays as it is: {why}; \
                 ask for another revision in the spec"
            )),
        }
    }

    /// Writes down that a revision failed; the next pass goes back.
    pub(in super::super) async fn turn_back(
        &self,
        resource: &O::Resource,
        way: &Way<O::Resource>,
        cx: &Context<O::Resource>,
    ) -> Result<Action, Error> {
        let reason = way.record.failed_revision.as_ref().map(|failed| failed.reason.clone()).unwrap_or_default();
        journal::decided(Turn::Failed, "RollingBack", &reason);
        self.report(resource, &Pass::TurnsBack(way), cx).await?;
        self.proclaim(resource, way, cx);
        Ok(Action::Recheck(ACT))
    }

    /// Tells what is new in a record that was written, and when to look again.
    pub(in super::super) fn proclaim(
        &self,
        resource: &O::Resource,
        way: &Way<O::Resource>,
        cx: &Context<O::Resource>,
    ) -> Action {
        if let Some(news) = way.news() {
            cx.handle.metrics.upgrades().count(&<O::Resource as Resource>::kind(&()), &news);
            self.record(resource, event(&news), cx);
        }
        if let Some(failed) = way.record.failed_revision.as_ref().filter(|_| way.record.is_rolled_back()) {
            journal::decided(Turn::Failed, "RolledBack", &failed.reason);
        }
        way.action()
    }

    /// What is missing of the workloads that a resource owns.
    pub(in super::super) fn unready(&self, resource: &O::Resource) -> Option<String> {
        let uid = resource.meta().uid.as_deref()?;
        let workloads = self.nursery.iter().flat_map(|children| {
            let kind = children.resource().kind.clone();
            children.owned_by(uid).into_iter().map(move |object| (kind.clone(), object))
        });
        workloads.into_iter().find_map(|(kind, object)| {
            let readiness = match kind.as_str() {
                "Deployment" => of::<Deployment>(object.value()),
                "StatefulSet" => of::<StatefulSet>(object.value()),
                "DaemonSet" => of::<DaemonSet>(object.value()),
                _ => Readiness::Ready,
            };
            let name = object.metadata().name.clone().unwrap_or_default();
            match readiness {
                Readiness::Ready => None,
                Readiness::NotYet(why) | Readiness::Failed(why) => Some(format!("{kind} {name}: {why}")),
            }
        })
    }
}

fn of<K>(value: Value) -> Readiness
where
    K: Resource<DynamicType = ()> + serde::Serialize + DeserializeOwned + 'static,
{
    match serde_json::from_value::<K>(value) {
        Ok(workload) => Readiness::of(&workload),
        Err(why) => Readiness::NotYet(format!("it cannot be read: {why}")),
    }
}
