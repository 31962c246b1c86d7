//! The task of one Pod: takes in what happens, decides, acts, and writes the Pod's status.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, PodStatus, ResourceRequirements};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::Api;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::container::Update;
use super::downward::Addresses;
use super::launch::Orders;
use super::observed::{Observed, State};
use super::plan::{self, Action};
use super::sources::{Names, Sources};
use super::{ephemeral, writing};
use crate::address::PodAddress;
use crate::cache::Lease;
use crate::context::Context;
use crate::proxy::{Departure, HostPorts};
use crate::room::{Demand, Place};
use crate::tree;
use crate::volume::Tokens;

/// Updates that wait for the Pod's task.
const UPDATES_MAX: usize = 64;
/// How long Pods get when the node itself ends.
const SHUTDOWN_GRACE_MAX: Duration = Duration::from_secs(10);
/// How soon something that failed is tried again, if nothing it depends on changes before.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// The node's handle on a Pod's task.
pub(crate) struct WorkerHandle {
    pod: watch::Sender<Arc<Pod>>,
    gone: CancellationToken,
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl WorkerHandle {
    /// Cancelled when everything of the Pod has ended.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Tells the task of a new version of its Pod.
    pub(crate) fn update(&self, pod: Arc<Pod>) {
        self.pod.send_replace(pod);
    }

    /// The Pod as last seen.
    pub(crate) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.pod.borrow())
    }

    /// Tells the task that its Pod was deleted under it.
    pub(crate) fn gone(&self) {
        self.gone.cancel();
    }

    /// True once everything of the Pod has ended and is cleaned up.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for the end of the task.
    pub(crate) async fn finished(self) {
        let _ = self.task.await;
    }
}

/// The task of one Pod.
pub(crate) struct Worker {
    pub(super) context: Arc<Context>,
    pub(super) pod: Arc<Pod>,
    pub(super) observed: Observed,
    pub(super) written: Option<PodStatus>,
    pods: watch::Receiver<Arc<Pod>>,
    gone: CancellationToken,
    stop: CancellationToken,
    /// Held from the moment that the Pod is to end: Services pass it over. Given up before its address is.
    departure: Option<Departure>,
    pub(super) address: Option<PodAddress>,
    pub(super) volumes: Arc<BTreeMap<String, PathBuf>>,
    pub(super) tokens: Tokens,
    pub(super) names: Names,
    pub(super) sources: Sources,
    leases: Vec<Lease>,
    pub(super) tasks: HashMap<String, Orders>,
    pub(super) sender: mpsc::Sender<(String, Update)>,
    updates: mpsc::Receiver<(String, Update)>,
    /// Not before this time is something that failed tried again.
    pub(super) retry: Option<Timestamp>,
    /// Looks at what the Pod stores.
    pub(super) storage: Option<AbortOnDropHandle<()>>,
    /// The ports of the machine that lead to it.
    pub(super) host_ports: Option<HostPorts>,
    /// What it was promised of the node.
    pub(super) place: Option<Place>,
    /// Changes of resources that were tried, and when they may be tried again.
    pub(super) attempts: BTreeMap<String, (ResourceRequirements, Timestamp)>,
}

/// Whether the task goes on.
enum Flow {
    Continue,
    Removed,
}

impl Worker {
    /// Starts the task of a Pod.
    ///
    /// `address` is the one that it has already, and `refusal` why it cannot run here: reason and message.
    pub(crate) fn spawn(
        context: Arc<Context>,
        pod: Arc<Pod>,
        (address, refusal): (Option<PodAddress>, Option<(String, String)>),
        stop: CancellationToken,
    ) -> WorkerHandle {
        let (sender, pods) = watch::channel(Arc::clone(&pod));
        let gone = CancellationToken::new();
        let (update_sender, updates) = mpsc::channel(UPDATES_MAX);
        let mut observed = Observed::from_pod(&pod, Timestamp::now());
        if refusal.is_some() {
            observed.failed = refusal;
        }
        let worker = Self {
            observed,
            names: Names::of(&pod),
            context,
            pod,
            written: None,
            pods,
            gone: gone.clone(),
            stop,
            departure: None,
            address,
            volumes: Arc::default(),
            tokens: Tokens::default(),
            sources: Sources::default(),
            leases: Vec::new(),
            tasks: HashMap::new(),
            sender: update_sender,
            updates,
            retry: None,
            storage: None,
            host_ports: None,
            place: None,
            attempts: BTreeMap::new(),
        };
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _guard = guard;
            worker.run().await;
        });
        WorkerHandle { pod: sender, gone, ended, task }
    }

    async fn run(mut self) {
        self.leases = self.names.lease(&self.context.cache, &self.pod);
        let promised = Demand::of(&self.observed.promised.imposed(&self.pod));
        self.place = Some(self.context.room.enter(&self.pod.uid().unwrap_or_default(), promised));
        let mut room = self.context.room.changes();
        self.recover().await;
        let mut changes = self.context.cache.changes();
        let mut services = self.context.directory.changes();
        loop {
            let wake = match self.act().await {
                (Flow::Removed, _) => return,
                (Flow::Continue, wake) => wake,
            };
            let timer = sleep_until(wake);
            tokio::select! {
                changed = self.pods.changed() => match changed {
                    Ok(()) => if self.take_pod() { self.refresh().await },
                    Err(_) => return self.shut_down().await,
                },
                Some((name, update)) = self.updates.recv() => self.take(&name, update),
                Ok(()) = changes.changed(), if !self.leases.is_empty() => self.refresh().await,
                Ok(()) = services.changed() => self.write_hosts(),
                Ok(()) = room.changed(), if self.observed.resize.pending.is_some() => {}
                () = timer => if self.token_due() { self.refresh().await },
                () = self.gone.cancelled(), if !self.is_gone() => {
                    // The object is no more: what is left is to end the processes.
                    let mut pod = (*self.pod).clone();
                    pod.metadata.deletion_timestamp.get_or_insert(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::now()));
                    self.pod = Arc::new(pod);
                },
                () = self.stop.cancelled() => return self.shut_down().await,
            }
        }
    }

    /// Takes in a new version of the Pod; a deletion that is now in more of a hurry reaches containers that end already.
    /// True if what containers are told about their Pod has changed.
    fn take_pod(&mut self) -> bool {
        let before = self.grace();
        let old = std::mem::replace(&mut self.pod, Arc::clone(&self.pods.borrow_and_update()));
        let now = self.grace();
        if now < before && self.pod.metadata.deletion_timestamp.is_some() {
            for orders in self.tasks.values() {
                orders.stop.send_if_modified(|grace| grace.replace(now).is_some());
            }
        }
        old.labels() != self.pod.labels() || old.annotations() != self.pod.annotations()
    }

    fn is_gone(&self) -> bool {
        self.gone.is_cancelled() && self.pod.metadata.deletion_timestamp.is_some()
    }

    fn token_due(&self) -> bool {
        self.tokens.renewal().is_some_and(|renewal| renewal <= Timestamp::now())
    }

    /// Does what is to be done now; when to look again.
    async fn act(&mut self) -> (Flow, Option<Timestamp>) {
        let now = Timestamp::now();
        let plan = plan::plan(&self.pod, &self.observed, now);
        let mut wake = [plan.wake, self.tokens.renewal(), self.resize(now)].into_iter().flatten().min();
        self.depart();
        self.close_host_ports().await;
        for action in plan.actions {
            match action {
                Action::Prepare if self.retry.is_none_or(|retry| retry <= now) => {
                    self.prepare().await;
                    wake = Some(now);
                }
                Action::Prepare => {}
                Action::Start(name) => self.start(&name),
                Action::BackOff(name) => self.back_off(&name),
                Action::Stop(name) => {
                    self.kill(&name, self.grace_left(&name), format!("Stopping container {name}"));
                }
                Action::Expire => {
                    let message = "Pod was active on the node longer than the specified deadline".to_owned();
                    self.observed.failed = Some(("DeadlineExceeded".to_owned(), message));
                    wake = Some(now);
                }
                Action::Remove => {
                    if self.remove().await {
                        return (Flow::Removed, None);
                    }
                    self.retry = Some(now + RETRY);
                }
            }
        }
        if !self.gone.is_cancelled() && !self.write_status().await {
            self.retry = Some(now + RETRY);
        }
        let retry = self.retry.filter(|retry| *retry > now);
        (Flow::Continue, [wake, retry].into_iter().flatten().min())
    }

    /// Before the first signal: Services give no new connections to a Pod that is to end.
    fn depart(&mut self) {
        let ends = self.pod.metadata.deletion_timestamp.is_some() || self.observed.failed.is_some();
        if ends && self.departure.is_none() {
            self.departure = self.address.as_ref().map(|address| self.context.leaving.enter(address.get()));
        }
    }

    pub(super) fn addresses(&self) -> Option<Addresses> {
        let host = self.context.config.address;
        if self.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true) {
            return Some(Addresses { pod: host, host });
        }
        self.address.as_ref().map(|address| Addresses { pod: address.get(), host })
    }

    /// Ends a container; `why` is told.
    pub(super) fn kill(&mut self, name: &str, grace: Duration, why: String) {
        if self.observed.containers.get(name).is_some_and(|found| matches!(found.state, State::Running { .. })) {
            self.context.events.normal(&*self.pod, Some(&ephemeral::field(&self.pod, name)), "Killing", why);
        }
        if let Some(orders) = self.tasks.get(name) {
            orders.stop.send_replace(Some(grace));
        }
        if let Some(observation) = self.observed.containers.get_mut(name) {
            observation.state = match observation.state {
                State::Running { since } => State::Stopping { since },
                ref other => other.clone(),
            };
        }
    }

    /// A container, with the resources that it was promised.
    pub(super) fn container(&self, name: &str) -> Option<Container> {
        let mut container = ephemeral::find(&self.pod, name)?;
        if let Some(promised) = self.observed.promised.containers.get(name) {
            container.resources = Some(promised.clone());
        }
        Some(container)
    }

    /// Ends every container because the node ends; the Pod's object stays as it is.
    async fn shut_down(mut self) {
        let grace = self.grace().min(SHUTDOWN_GRACE_MAX);
        for orders in self.tasks.values() {
            orders.stop.send_replace(Some(grace));
        }
        while !self.tasks.is_empty() {
            let Some((name, update)) = self.updates.recv().await else { return };
            if matches!(update, Update::Ended(_) | Update::Cancelled | Update::Refused { .. }) {
                self.tasks.remove(&name);
            }
        }
        // What is in memory does not outlast the node, as it would not outlast the machine.
        if let Err(error) = tree::remove(&self.context.memory_directory(&self.pod.uid().unwrap_or_default())) {
            tracing::warn!(%error, pod = self.pod.name_any(), "volumes in memory were not removed");
        }
    }

    /// Removes the Pod's files and its object; false if that has to be tried again.
    async fn remove(&mut self) -> bool {
        if !self.gone.is_cancelled() {
            self.write_status().await;
        }
        let uid = self.pod.uid().unwrap_or_default();
        let directories = [
            self.context.pod_directory(&uid),
            self.context.memory_directory(&uid),
            self.context.log_directory(&*self.pod),
        ];
        let context = Arc::clone(&self.context);
        let remove = move || {
            context.release(&uid);
            directories.iter().try_for_each(|directory| tree::remove(directory))
        };
        let removed = tokio::task::spawn_blocking(remove).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, pod = self.pod.name_any(), "files of a Pod were not removed");
        }
        self.gone.is_cancelled() || writing::delete(&self.pods_api(), &self.pod).await
    }

    pub(super) fn pods_api(&self) -> Api<Pod> {
        Api::namespaced(self.context.config.client.clone(), &self.pod.namespace().unwrap_or_default())
    }
}

async fn sleep_until(wake: Option<Timestamp>) {
    match wake {
        Some(wake) => {
            let wait = wake.duration_since(Timestamp::now());
            tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
        }
        None => std::future::pending().await,
    }
}
