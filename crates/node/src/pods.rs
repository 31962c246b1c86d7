//! The Pods of this node: follows the API server's list and keeps a task for each.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::address::PodAddress;
use crate::context::Context;
use crate::host_port;
use crate::node::sweep;
use crate::pod::{Worker, WorkerHandle};
use crate::sysctl;

/// The Pods of this node.
pub(crate) struct Pods {
    context: Arc<Context>,
    /// By uid: a Pod that was deleted and made again is another Pod.
    workers: Arc<Mutex<HashMap<String, WorkerHandle>>>,
}

impl Pods {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, workers: Arc::default() }
    }

    /// All Pods that are here.
    pub(crate) fn all(&self) -> Vec<Arc<Pod>> {
        self.workers.lock().expect("the lock is never held across a panic").values().map(WorkerHandle::pod).collect()
    }

    /// The Pod of a name, if it is here.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.find_running(namespace, name).map(|(pod, _)| pod)
    }

    /// The Pod of a name, if it is here, and what is cancelled when everything of it has ended.
    pub(crate) fn find_running(&self, namespace: &str, name: &str) -> Option<(Arc<Pod>, CancellationToken)> {
        let workers = self.workers.lock().expect("the lock is never held across a panic");
        let pods = workers.values().map(|worker| (worker.pod(), worker.ended()));
        pods.filter(|(pod, _)| pod.name_any() == name && pod.namespace().as_deref() == Some(namespace))
            .max_by_key(|(pod, _)| pod.metadata.creation_timestamp.clone())
    }

    /// Follows the list until told to stop; returns when every process of every Pod has ended.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        let pods: Api<Pod> = Api::all(self.context.config.client.clone());
        let selector = format!("spec.nodeName={}", self.context.config.name);
        let events = watcher(pods, watcher::Config::default().fields(&selector)).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut arriving = Vec::new();
        loop {
            let event = tokio::select! {
                Some(event) = events.next() => event,
                () = stop.cancelled() => break,
            };
            match event {
                Ok(Event::Init) => arriving.clear(),
                Ok(Event::InitApply(pod)) => arriving.push(pod),
                Ok(Event::InitDone) => self.take_list(std::mem::take(&mut arriving), &stop),
                Ok(Event::Apply(pod)) => self.apply(pod, None, &stop),
                Ok(Event::Delete(pod)) => self.delete(&pod),
                Err(error) => tracing::debug!(%error, "the watch of Pods is being renewed"),
            }
        }
        let workers = std::mem::take(&mut *self.workers.lock().expect("the lock is never held across a panic"));
        futures::future::join_all(workers.into_values().map(WorkerHandle::finished)).await;
    }

    /// Takes in a full list. Before any Pod gets a new address, those that have one keep it.
    fn take_list(&self, pods: Vec<Pod>, stop: &CancellationToken) {
        let listed: HashSet<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        let kept: Vec<(Pod, Option<PodAddress>)> = pods
            .into_iter()
            .map(|pod| {
                let address = kept_address(&pod).and_then(|address| self.context.addresses.take_again(address));
                (pod, address)
            })
            .collect();
        for (pod, address) in kept {
            self.apply(pod, address, stop);
        }
        self.settle(&listed);
    }

    fn apply(&self, pod: Pod, address: Option<PodAddress>, stop: &CancellationToken) {
        let Some(uid) = pod.uid() else { return };
        let mut workers = self.workers.lock().expect("the lock is never held across a panic");
        workers.retain(|_, worker| !worker.is_finished());
        let pod = Arc::new(pod);
        match workers.get(&uid) {
            Some(worker) => worker.update(pod),
            None => {
                let others: Vec<Arc<Pod>> = workers.values().map(WorkerHandle::pod).collect();
                let is_new = pod.status.as_ref().is_none_or(|status| status.start_time.is_none());
                let refusal = if is_new { host_port::conflict(&pod, &others) } else { None };
                let refusal = refusal.or_else(|| sysctl::forbidden(&pod));
                let worker = Worker::spawn(Arc::clone(&self.context), pod, (address, refusal), stop.clone());
                workers.insert(uid, worker);
            }
        }
    }

    fn delete(&self, pod: &Pod) {
        let workers = self.workers.lock().expect("the lock is never held across a panic");
        if let Some(worker) = pod.uid().and_then(|uid| workers.get(&uid)) {
            worker.gone();
        }
    }

    /// After a full list: what is not in it is gone, and so is what Pods of an earlier life of the node left.
    fn settle(&self, listed: &HashSet<String>) {
        let workers = self.workers.lock().expect("the lock is never held across a panic");
        for (_, worker) in workers.iter().filter(|(uid, _)| !listed.contains(*uid)) {
            worker.gone();
        }
        let (context, workers) = (Arc::clone(&self.context), Arc::clone(&self.workers));
        // Asked for each thing that is found: a Pod is known here before anything of it is made.
        let is_alive =
            move |uid: &str| workers.lock().expect("the lock is never held across a panic").contains_key(uid);
        tokio::task::spawn_blocking(move || sweep(&context, &is_alive));
    }
}

/// The address of a Pod that may still run.
fn kept_address(pod: &Pod) -> Option<Ipv4Addr> {
    let status = pod.status.as_ref()?;
    let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    status.pod_ip.as_ref().filter(|_| !is_over)?.parse().ok()
}
