//! The Pods of this node: follows the API server's list and keeps a task for each.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::node::sweep;
use crate::pod::{Worker, WorkerHandle};

/// The Pods of this node.
pub(crate) struct Pods {
    context: Arc<Context>,
    /// By uid: a Pod that was deleted and made again is another Pod.
    workers: Mutex<HashMap<String, WorkerHandle>>,
}

impl Pods {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, workers: Mutex::default() }
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
        let mut listed = HashSet::new();
        loop {
            let event = tokio::select! {
                Some(event) = events.next() => event,
                () = stop.cancelled() => break,
            };
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => {
                    listed.extend(pod.uid());
                    self.apply(pod, &stop);
                }
                Ok(Event::InitDone) => self.settle(&listed),
                Ok(Event::Apply(pod)) => self.apply(pod, &stop),
                Ok(Event::Delete(pod)) => self.delete(&pod),
                Err(error) => tracing::debug!(%error, "the watch of Pods is being renewed"),
            }
        }
        let workers = std::mem::take(&mut *self.workers.lock().expect("the lock is never held across a panic"));
        futures::future::join_all(workers.into_values().map(WorkerHandle::finished)).await;
    }

    fn apply(&self, pod: Pod, stop: &CancellationToken) {
        let Some(uid) = pod.uid() else { return };
        let mut workers = self.workers.lock().expect("the lock is never held across a panic");
        workers.retain(|_, worker| !worker.is_finished());
        let pod = Arc::new(pod);
        match workers.get(&uid) {
            Some(worker) => worker.update(pod),
            None => {
                workers.insert(uid, Worker::spawn(Arc::clone(&self.context), pod, stop.clone()));
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
        let alive: HashSet<String> = workers.keys().cloned().collect();
        let context = Arc::clone(&self.context);
        tokio::task::spawn_blocking(move || sweep(&context, &alive));
    }
}
