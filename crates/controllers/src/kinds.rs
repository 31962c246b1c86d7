//! The kinds that the cluster serves, kept current while CustomResourceDefinitions come and go.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::discovery::{ApiResource, Discovery, Scope};
use kube::{Api, Client};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Backoff, Clock, Manager, Watch};

/// One kind, in the version that is most stable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    verbs: Vec<String>,
}

impl Kind {
    /// Whether the kind can be listed, watched and deleted, and so takes part in the life of its owners.
    pub(crate) fn is_collectable(&self) -> bool {
        // Events are many, have no owners and go by their time to live.
        self.resource.kind != "Event" && ["list", "watch", "delete"].iter().all(|verb| self.can(verb))
    }

    /// Whether the kind has the verb.
    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The API of the kind, in `namespace` if it lives in namespaces.
    pub(crate) fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }
}

/// All kinds at one moment.
pub(crate) type KindList = Arc<[Kind]>;

/// The kinds; clones are the same list.
#[derive(Clone)]
pub(crate) struct Kinds(watch::Receiver<KindList>);

impl Kinds {
    /// Starts to keep the list with the manager.
    pub(crate) fn new(manager: &mut Manager) -> Self {
        let (sender, receiver) = watch::channel(KindList::default());
        let handle = manager.handle();
        let definitions = handle.informers.get(Watch::<PartialObjectMeta<CustomResourceDefinition>>::all());
        manager.add_task(move |stop| async move {
            let changed = Arc::new(Notify::new());
            changed.notify_one();
            let told = changed.clone();
            let _subscription = definitions.subscribe(move |_| told.notify_one());
            keep(handle.client, handle.clock, sender, changed, stop).await;
        });
        Self(receiver)
    }

    /// The list as it is.
    pub(crate) fn now(&self) -> KindList {
        self.0.borrow().clone()
    }

    /// The kind of an owner reference or an object; the version does not matter.
    pub(crate) fn find(&self, group: &str, kind: &str) -> Option<Kind> {
        self.0.borrow().iter().find(|known| known.resource.group == group && known.resource.kind == kind).cloned()
    }

    /// Waits for another list than the one that was seen last; `false` when there will be none.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The group of an `apiVersion`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

async fn keep(
    client: Client,
    clock: Clock,
    sender: watch::Sender<KindList>,
    changed: Arc<Notify>,
    stop: CancellationToken,
) {
    let mut failures = 0;
    loop {
        let wait = async {
            match failures {
                0 => changed.notified().await,
                _ => clock.sleep(Backoff::WATCH.jittered(failures, &clock)).await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = wait => {}
        }
        match discover(&client).await {
            Ok(kinds) => {
                failures = 0;
                sender.send_if_modified(|known| {
                    let differs = *known != kinds;
                    *known = kinds;
                    differs
                });
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, "Cannot list the kinds of the cluster");
            }
        }
    }
}

async fn discover(client: &Client) -> Result<KindList, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut kinds: Vec<Kind> = vec![];
    for group in discovery.groups_alphabetical() {
        let mut resources = group.resources_by_stability();
        resources.sort_by(|(a, _), (b, _)| a.plural.cmp(&b.plural));
        kinds.extend(resources.into_iter().map(|(resource, capabilities)| Kind {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
            verbs: capabilities.operations,
        }));
    }
    Ok(kinds.into())
}
