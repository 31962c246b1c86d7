//! Pods get a node.

mod affinity;
mod decide;
mod fit;
mod loads;
mod neighbours;
mod preempt;
mod spread;
mod storage;
mod taints;
mod terms;
mod waiting;
mod worth;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Binding, Namespace, Node, ObjectReference, Pod, PodCondition};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch};
use kube::core::Status;
use serde_json::json;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, is_gone};
use crate::disrupt::disrupt;
use crate::pods;
use decide::{Board, Decision};
use loads::Loads;
use preempt::Preemption;
use storage::Storage;
use waiting::Waiting;

pub(crate) use affinity::{admits, selects};
pub(crate) use taints::{tolerates, untolerated};

/// Adds the scheduler to the manager. Decisions are made one after the other, bindings are written side by side.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let pods = manager.informers().all::<Pod>();
    let namespaces = manager.informers().all::<Namespace>();
    let budgets = manager.informers().all::<PodDisruptionBudget>();
    let storage = Storage::new(manager);
    let loads = Arc::new(Mutex::<Loads>::default());
    let waiting = Arc::new(Waiting::new(pods.clone()));
    let process = Scheduler {
        actor: Actor::new(manager, "default-scheduler"),
        nodes: nodes.clone(),
        pods: pods.clone(),
        namespaces: namespaces.clone(),
        budgets: budgets.clone(),
        storage: storage.clone(),
        loads: loads.clone(),
        waiting: waiting.clone(),
    };
    let [for_node, for_claim, for_volume, for_class] = std::array::from_fn(|_| waiting.clone());
    let controller = Controller::keyed(manager, "scheduler", process)
        .workers(WORKERS)
        .on(&namespaces, |_| None)
        .on(&budgets, |_| None)
        .on(&storage.claims, move |_| for_claim.with_claims())
        .on(&storage.volumes, move |_| for_volume.with_claims())
        .on(&storage.classes, move |_| for_class.with_claims())
        .on(&nodes, move |change| if matters(change) { for_node.all() } else { vec![] })
        .on(&pods, move |change| {
            loads.lock().expect("no code that can panic runs under this lock").observe(change);
            concerned(change, &waiting)
        });
    manager.add(controller);
}

/// How many Pods are bound at the same time.
const WORKERS: usize = 8;

struct Scheduler {
    actor: Actor,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    namespaces: Informer<Namespace>,
    budgets: Informer<PodDisruptionBudget>,
    storage: Storage,
    loads: Arc<Mutex<Loads>>,
    waiting: Arc<Waiting>,
}

impl Process for Scheduler {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Await) };
        let Some((decision, nomination)) = self.decide(&pod) else { return Ok(Action::Await) };
        let now = self.actor.clock.now();
        match decision {
            Decision::Ignore => {}
            Decision::Gated => {
                let message = "Scheduling is blocked due to non-empty scheduling gates";
                self.report(&pod, refusal("SchedulingGated", message, now), &Nomination::Stays).await?;
            }
            Decision::Bind(node) if self.storage.choose(&self.actor, &pod, &node).await? => self.wait(&pod),
            Decision::Bind(node) => self.bind(&pod, &node).await?,
            Decision::Unschedulable(why) => self.refuse(&pod, why, &nomination).await?,
            Decision::Preempt { plan, why } => {
                self.refuse(&pod, why, &nomination).await?;
                self.supplant(&pod, &plan.node).await?;
                self.preempt(&pod, &plan).await?;
            }
        }
        Ok(Action::Await)
    }
}

impl Scheduler {
    /// The decision, which takes its place at once; none for a Pod that has a place already.
    fn decide(&self, pod: &Arc<Pod>) -> Option<(Decision, Nomination)> {
        let nodes = self.nodes.filter(|node| node.metadata.deletion_timestamp.is_none());
        let budgets = self.budgets.all();
        let labels_of = |namespace: &str| -> BTreeMap<String, String> {
            self.namespaces.get(&ObjectKey::cluster(namespace)).map(|it| it.labels().clone()).unwrap_or_default()
        };
        let mut loads = self.loads();
        if loads.has(pod) {
            return None;
        }
        // Noted before the look: whoever makes room after it finds the Pod waiting.
        self.waiting.add(pod);
        let needs = self.storage.needs(pod);
        let board = Board {
            nodes: nodes.iter().map(|node| &**node).collect(),
            loads: &loads,
            labels_of: &labels_of,
            budgets: &budgets,
            needs: needs.as_deref().unwrap_or_default(),
        };
        let mut decision = board.decide(pod);
        if let (Decision::Bind(_) | Decision::Preempt { .. }, Err(why)) = (&decision, &needs) {
            decision = Decision::Unschedulable(format!("0/{} nodes are available: {why}.", nodes.len()));
        }
        let nomination = match &decision {
            Decision::Preempt { plan, .. } => Nomination::Is(plan.node.clone()),
            // Who was sent away for it has gone, and it found no room all the same.
            Decision::Unschedulable(_) if !board.waits_for_victims(pod) => Nomination::Ends,
            _ => Nomination::Stays,
        };
        match (&decision, &nomination) {
            (Decision::Bind(node), _) => loads.place(pod, node),
            (_, Nomination::Is(node)) => loads.nominate(pod, node),
            (_, Nomination::Ends) => loads.dismiss(pod),
            (_, Nomination::Stays) => {}
        }
        if !matches!(decision, Decision::Unschedulable(_) | Decision::Preempt { .. }) {
            self.waiting.remove(pod);
        }
        Some((decision, nomination))
    }

    /// The Pod comes again when its claims are bound.
    fn wait(&self, pod: &Pod) {
        self.waiting.add(pod);
        self.loads().remove(&pod.uid().unwrap_or_default());
    }

    fn loads(&self) -> MutexGuard<'_, Loads> {
        self.loads.lock().expect("no code that can panic runs under this lock")
    }

    async fn refuse(&self, pod: &Pod, why: String, nomination: &Nomination) -> Result<(), Error> {
        let condition = refusal("Unschedulable", &why, self.actor.clock.now());
        if self.report(pod, condition, nomination).await? {
            self.actor.tell(pod, Event::warning("FailedScheduling", why));
        }
        Ok(())
    }

    /// Takes the node from less important Pods that it was kept for; they look for another.
    async fn supplant(&self, pod: &Pod, node: &str) -> Result<(), Error> {
        let others = self.loads().supplant(pod, node);
        for other in others.iter().filter_map(|uid| self.pods.by_uid(uid)) {
            let patch = json!({"metadata": {"uid": other.uid()}, "status": {"nominatedNodeName": null}});
            let api = self.actor.api::<Pod>(other.namespace().as_deref());
            match api.patch_status(&other.name_any(), &self.actor.patch(), &Patch::Merge(&patch)).await {
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends the victims away. Their leaving brings the Pod here again.
    async fn preempt(&self, pod: &Pod, plan: &Preemption) -> Result<(), Error> {
        for victim in plan.victims.iter().filter(|victim| !pods::is_terminating(victim)) {
            let text = format!("Preempted by pod {} on node {}", pod.uid().unwrap_or_default(), plan.node);
            if disrupt(&self.actor, victim, preempt::CAUSE, DeleteParams::background()).await? {
                self.actor.tell(&**victim, Event::normal("Preempted", text));
            }
        }
        Ok(())
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), kube::Error> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = self.actor.api::<Pod>(pod.namespace().as_deref());
        let bound: Result<Status, _> =
            api.create_subresource("binding", &pod.name_any(), &self.actor.post(), &binding).await;
        if let Err(error) = bound {
            self.loads().remove(&pod.uid().unwrap_or_default());
            self.waiting.add(pod);
            return if is_gone(&error) { Ok(()) } else { Err(error) };
        }
        let place = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        self.actor.tell(pod, Event::normal("Scheduled", format!("Successfully assigned {place} to {node}")));
        Ok(())
    }

    /// Writes the condition, and the node where room is made, if that says something new.
    async fn report(&self, pod: &Pod, wanted: PodCondition, nomination: &Nomination) -> Result<bool, kube::Error> {
        let known = pods::condition(pod, &wanted.type_);
        let same = |known: &PodCondition| {
            (&known.status, &known.reason, &known.message) == (&wanted.status, &wanted.reason, &wanted.message)
        };
        let known_node = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
        let node = match nomination {
            Nomination::Stays => known_node.clone(),
            Nomination::Ends => None,
            Nomination::Is(node) => Some(node.clone()),
        };
        if known.is_some_and(same) && node == known_node {
            return Ok(false);
        }
        let mut wanted = wanted;
        if let Some(known) = known.filter(|known| known.status == wanted.status) {
            wanted.last_transition_time = known.last_transition_time.clone();
        }
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        status.nominated_node_name = node;
        let conditions = status.conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != wanted.type_);
        conditions.push(wanted);
        self.actor.replace_status(&pod).await.map(|_| true)
    }
}

/// What becomes of the node that is kept for a Pod.
#[derive(Debug)]
enum Nomination {
    Stays,
    Ends,
    Is(String),
}

fn refusal(reason: &str, message: &str, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    }
}

/// Whether a node changed in something that the scheduler looks at: heartbeats do not count.
fn matters(change: &Change<Node>) -> bool {
    let view = |node: &Node| {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone());
        (node.metadata.labels.clone(), node.spec.clone(), allocatable, node.metadata.deletion_timestamp.is_some())
    };
    change.old.as_deref().map(view) != change.new.as_deref().map(view)
}

/// The Pod itself while it has no node, and those that wait when a Pod makes room or comes beside them.
fn concerned(change: &Change<Pod>, waiting: &Waiting) -> Vec<ObjectKey> {
    let takes_room = |pod: &Pod| pods::node(pod).is_some() && !pods::is_finished(pod);
    let takes = |pod: Option<&Pod>| pod.is_some_and(takes_room);
    let (before, after) = (takes(change.old.as_deref()), takes(change.new.as_deref()));
    if before && !after {
        return waiting.all();
    }
    let mut keys: Vec<ObjectKey> =
        change.new.iter().filter(|pod| pods::node(pod).is_none()).map(|_| change.key()).collect();
    let labels = |pod: Option<&Arc<Pod>>| pod.map(|pod| pod.labels().clone());
    if after && (!before || labels(change.old.as_ref()) != labels(change.new.as_ref())) {
        keys.extend(waiting.choosy());
    }
    keys
}
