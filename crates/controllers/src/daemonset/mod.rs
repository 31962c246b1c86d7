//! DaemonSets keep a Pod on every node that suits.

mod decide;
mod pod;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::Selector;
use windlass_runtime::{Action, Context, Controller, Error, Event, Informer, Manager, ObjectKey, Reconcile};

use crate::actor::{Actor, message, namespace_leaves};
use crate::revisions::HASH_LABEL;
use crate::{adoption, history, recheck};
use decide::{Observed, Plan};

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let pods = manager.informers().all::<Pod>();
    let nodes = manager.informers().all::<Node>();
    let revisions = manager.informers().all::<ControllerRevision>();
    let actor = Actor::new(manager, "daemonset-controller");
    let process = DaemonSets { actor, pods: pods.clone(), nodes: nodes.clone(), revisions: revisions.clone() };
    let controller = Controller::of(manager, process);
    let (sets, all) = (controller.informer(), controller.informer());
    let controller = controller
        .owns(&pods)
        .owns(&revisions)
        .on(&pods, move |change| adoption::wooers(change, &sets, selector))
        .on(&nodes, move |change| {
            let view = |node: &Node| (node.metadata.labels.clone(), node.spec.clone());
            let same = change.old.as_deref().map(view) == change.new.as_deref().map(view);
            let concerned = if same { vec![] } else { all.all() };
            concerned.iter().map(|set| ObjectKey::of(&**set)).collect::<Vec<_>>()
        });
    manager.add(controller);
}

struct DaemonSets {
    actor: Actor,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    revisions: Informer<ControllerRevision>,
}

fn selector(set: &DaemonSet) -> LabelSelector {
    set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default()
}

impl Reconcile for DaemonSets {
    type Resource = DaemonSet;

    async fn reconcile(&self, set: Arc<DaemonSet>, _: &Context<DaemonSet>) -> Result<Action, Error> {
        let selector = Selector::try_from(selector(&set)).map_err(|error| Error::Invalid(error.to_string()))?;
        let nearby = self.pods.claimable(&set.uid().unwrap_or_default(), &set.namespace().unwrap_or_default());
        let owned = adoption::settle(&self.actor, &*set, &selector, nearby).await?;
        let known = self.revisions.owned_by(&set.uid().unwrap_or_default());
        let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
        let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let revision = history::ensure(&self.actor, &*set, &template, &known, collisions).await?;
        let hash = revision.labels().get(HASH_LABEL).cloned().unwrap_or_default();

        let mut nodes = self.nodes.all();
        nodes.sort_by_key(|node| node.name_any());
        let nodes: Vec<&Node> = nodes.iter().map(|node| &**node).collect();
        let pods: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let now = self.actor.clock.now();
        let observed = Observed { set: &set, nodes: &nodes, pods: &pods, hash: &hash, now };
        let result = self.act(observed).await;
        let (status, again) = decide::status(observed);
        if set.status.as_ref() != Some(&status) {
            self.actor.replace_status(&DaemonSet { status: Some(status), ..DaemonSet::clone(&set) }).await?;
        }
        result?;
        let in_use = [revision.name_any()];
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        history::trim(&self.actor, &known, &in_use, limit).await?;
        Ok(recheck::at(again, now))
    }
}

impl DaemonSets {
    async fn act(&self, observed: Observed<'_>) -> Result<(), Error> {
        let set = observed.set;
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let plan = decide::plan(observed);
        if plan != Plan::default() {
            self.actor.check_current(set).await?;
        }
        for node in &plan.create {
            match self.actor.create(&pod::make(set, node, observed.hash)).await {
                Ok(pod) => {
                    self.actor.tell(set, Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())));
                }
                Err(error) if namespace_leaves(&error) => return Ok(()),
                Err(error) => {
                    self.actor
                        .tell(set, Event::warning("FailedCreate", format!("Error creating: {}", message(&error))));
                    return Err(error.into());
                }
            }
        }
        for pod in plan.delete {
            if self.actor.delete(pod).await? {
                self.actor.tell(set, Event::normal("SuccessfulDelete", format!("Deleted pod: {}", pod.name_any())));
            }
        }
        Ok(())
    }
}
