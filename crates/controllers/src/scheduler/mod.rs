//! Pods get a node.

mod affinity;
mod decide;
mod fit;
mod loads;
mod taints;

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use kube::core::Status;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, is_gone};
use crate::pods;
use decide::{Board, Decision};
use loads::Loads;

pub(crate) use affinity::admits;
pub(crate) use taints::untolerated;

/// Adds the scheduler to the manager. Decisions are made one after the other, bindings are written side by side.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let pods = manager.informers().all::<Pod>();
    let loads = Arc::new(Mutex::<Loads>::default());
    let process = Scheduler {
        actor: Actor::new(manager, "default-scheduler"),
        nodes: nodes.clone(),
        pods: pods.clone(),
        loads: loads.clone(),
    };
    let (waiting, waiting_too) = (pods.clone(), pods.clone());
    let controller = Controller::keyed(manager, "scheduler", process)
        .workers(WORKERS)
        .on(&nodes, move |change| if matters(change) { unbound(&waiting) } else { vec![] })
        .on(&pods, move |change| {
            loads.lock().expect("no code that can panic runs under this lock").observe(change);
            concerned(change, &waiting_too)
        });
    manager.add(controller);
}

/// How many Pods are bound at the same time.
const WORKERS: usize = 8;

struct Scheduler {
    actor: Actor,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    loads: Arc<Mutex<Loads>>,
}

impl Process for Scheduler {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Await) };
        let Some(decision) = self.decide(&pod) else { return Ok(Action::Await) };
        let now = self.actor.clock.now();
        match decision {
            Decision::Ignore => {}
            Decision::Gated => {
                let message = "Scheduling is blocked due to non-empty scheduling gates";
                self.report(&pod, refusal("SchedulingGated", message, now)).await?;
            }
            Decision::Bind(node) => self.bind(&pod, &node).await?,
            Decision::Unschedulable(why) => {
                if self.report(&pod, refusal("Unschedulable", &why, now)).await? {
                    self.actor.tell(&*pod, Event::warning("FailedScheduling", why));
                }
            }
        }
        Ok(Action::Await)
    }
}

impl Scheduler {
    /// The decision, which takes its place at once; none for a Pod that has a place already.
    fn decide(&self, pod: &Pod) -> Option<Decision> {
        let nodes = self.nodes.filter(|node| node.metadata.deletion_timestamp.is_none());
        let nodes: Vec<&Node> = nodes.iter().map(|node| &**node).collect();
        let mut loads = self.loads();
        if loads.has(pod) {
            return None;
        }
        let decision = Board::new(&nodes, &loads).decide(pod);
        if let Decision::Bind(node) = &decision {
            loads.place(pod, node);
        }
        Some(decision)
    }

    fn loads(&self) -> MutexGuard<'_, Loads> {
        self.loads.lock().expect("no code that can panic runs under this lock")
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
            return if is_gone(&error) { Ok(()) } else { Err(error) };
        }
        let place = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        self.actor.tell(pod, Event::normal("Scheduled", format!("Successfully assigned {place} to {node}")));
        Ok(())
    }

    /// Writes the condition if it says something new.
    async fn report(&self, pod: &Pod, wanted: PodCondition) -> Result<bool, kube::Error> {
        let known = pods::condition(pod, &wanted.type_);
        let same = |known: &PodCondition| {
            (&known.status, &known.reason, &known.message) == (&wanted.status, &wanted.reason, &wanted.message)
        };
        if known.is_some_and(same) {
            return Ok(false);
        }
        let mut wanted = wanted;
        if let Some(known) = known.filter(|known| known.status == wanted.status) {
            wanted.last_transition_time = known.last_transition_time.clone();
        }
        let mut pod = pod.clone();
        let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != wanted.type_);
        conditions.push(wanted);
        self.actor.replace_status(&pod).await.map(|_| true)
    }
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

/// The Pod itself while it has no node, and all that wait when a Pod makes room.
fn concerned(change: &Change<Pod>, waiting: &Informer<Pod>) -> Vec<ObjectKey> {
    let makes_room = |pod: &Pod| pods::node(pod).is_some() && !pods::is_finished(pod);
    let left = change.old.as_deref().is_some_and(makes_room) && !change.new.as_deref().is_some_and(makes_room);
    if left {
        return unbound(waiting);
    }
    change.new.iter().filter(|pod| pods::node(pod).is_none()).map(|_| change.key()).collect()
}

fn unbound(pods: &Informer<Pod>) -> Vec<ObjectKey> {
    let waiting = pods.filter(|pod| pods::node(pod).is_none() && pods::is_active(pod));
    waiting.iter().map(|pod| ObjectKey::of(&**pod)).collect()
}
