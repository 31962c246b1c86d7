//! Brings a Memcached to where it is declared to be.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::children::{self, NAME_LABEL, OWNER_LABEL};
use crate::resource::{Memcached, MemcachedStatus};

const MANAGER: &str = "memcached-operator";
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the {kind} could not be kept: {source}")]
    Child { kind: String, source: kube::Error },
    #[error("the Pods could not be listed: {0}")]
    Pods(#[source] kube::Error),
    #[error("the status could not be written: {0}")]
    Status(#[source] kube::Error),
    #[error("the event could not be written: {0}")]
    Event(#[source] kube::Error),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

/// Works until the process is told to stop.
pub async fn run(client: Client) {
    let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
    let context = Arc::new(Context { client: client.clone(), recorder });
    let every = watcher::Config::default;
    Controller::new(Api::<Memcached>::all(client.clone()), every())
        .owns(Api::<Deployment>::all(client.clone()), every())
        .owns(Api::<Service>::all(client.clone()), every())
        .watches(Api::<Pod>::all(client), every().labels(&format!("{NAME_LABEL}=memcached")), owner_of)
        .shutdown_on_signal()
        .run(reconcile, error_policy, context)
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::warn!(%error, "Reconciling failed");
            }
        })
        .await;
}

/// The Memcached that a Pod belongs to: it is owned by a ReplicaSet, not by the Memcached itself.
fn owner_of(pod: Pod) -> Option<ObjectRef<Memcached>> {
    let name = pod.labels().get(OWNER_LABEL)?.clone();
    Some(ObjectRef::new(&name).within(&pod.namespace()?))
}

fn error_policy(_: Arc<Memcached>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(RETRY)
}

async fn reconcile(memcached: Arc<Memcached>, context: Arc<Context>) -> Result<Action, Error> {
    if memcached.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let result = context.converge(&memcached).await;
    if let Err(error) = &result {
        context.tell(&memcached, EventType::Warning, error.to_string()).await?;
    }
    result.map(|()| Action::await_change())
}

impl Context {
    async fn converge(&self, memcached: &Memcached) -> Result<(), Error> {
        self.keep(memcached, &children::deployment(memcached)).await?;
        self.keep(memcached, &children::service(memcached)).await?;
        self.report(memcached).await
    }

    async fn tell(&self, memcached: &Memcached, type_: EventType, note: String) -> Result<(), Error> {
        let reason = if type_ == EventType::Normal { "Kept" } else { "Failed" }.to_owned();
        let event = Event { type_, reason, note: Some(note), action: "Keep".into(), secondary: None };
        self.recorder.publish(&event, &memcached.object_ref(&())).await.map_err(Error::Event)
    }

    /// Makes a child, or changes what of it is not as wanted, and tells of it.
    async fn keep<K>(&self, memcached: &Memcached, child: &K) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let failed = |source| Error::Child { kind: K::kind(&()).into_owned(), source };
        let api: Api<K> = Api::namespaced(self.client.clone(), &memcached.namespace().unwrap_or_default());
        let name = child.name_any();
        let before = api.get_metadata_opt(&name).await.map_err(failed)?;
        let params = PatchParams::apply(MANAGER).force();
        let after = api.patch(&name, &params, &Patch::Apply(child)).await.map_err(failed)?;
        let done = match before {
            None => "created",
            Some(before) if before.resource_version() != after.resource_version() => "changed",
            Some(_) => return Ok(()),
        };
        self.tell(memcached, EventType::Normal, format!("{} {name} was {done}", K::kind(&()))).await
    }

    /// Writes the status, if it is another than before.
    async fn report(&self, memcached: &Memcached) -> Result<(), Error> {
        let namespace = memcached.namespace().unwrap_or_default();
        let selector = children::selector(memcached);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let mut pods = pods.list(&ListParams::default().labels(&selector)).await.map_err(Error::Pods)?.items;
        pods.retain(is_active);
        let (count, ready) = (pods.len(), pods.iter().filter(|pod| is_ready(pod)).count());
        let size = usize::try_from(memcached.spec.size).unwrap_or_default();
        let old = memcached.status.clone().unwrap_or_default();
        let message = format!("{ready} of {size} Pods are ready");
        let mut nodes: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        nodes.sort();
        let status = MemcachedStatus {
            nodes,
            replicas: i32::try_from(count).unwrap_or(i32::MAX),
            selector,
            conditions: vec![condition(memcached, &old, ready == size && count == size, message)],
        };
        if status == old {
            return Ok(());
        }
        let memcacheds: Api<Memcached> = Api::namespaced(self.client.clone(), &namespace);
        let patch = Patch::Merge(json!({"status": status}));
        memcacheds.patch_status(&memcached.name_any(), &PatchParams::default(), &patch).await.map_err(Error::Status)?;
        Ok(())
    }
}

/// The condition Ready; its time is that of its last change.
fn condition(memcached: &Memcached, old: &MemcachedStatus, is_true: bool, message: String) -> Condition {
    let status = if is_true { "True" } else { "False" };
    let known = old.conditions.iter().find(|known| known.type_ == "Ready" && known.status == status);
    Condition {
        type_: "Ready".into(),
        status: status.into(),
        reason: if is_true { "Settled" } else { "Progressing" }.into(),
        message,
        observed_generation: memcached.metadata.generation,
        last_transition_time: known.map_or_else(now, |known| known.last_transition_time.clone()),
    }
}

/// As it comes back from the API server: in whole seconds.
fn now() -> Time {
    Time(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default())
}

fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
