//! Services become Endpoints and EndpointSlices.

mod address;
mod mirror;
mod slices;
mod subsets;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, exists_already, is_gone, namespace_leaves};

/// The label on Endpoints that this controller keeps.
const ENDPOINTS_MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

/// Adds the controllers to the manager.
pub(crate) fn add(manager: &mut Manager) {
    mirror::add(manager);
    let services = manager.informers().all::<Service>();
    let pods = manager.informers().all::<Pod>();
    let endpoints = manager.informers().all::<Endpoints>();
    let slices = manager.informers().all::<EndpointSlice>();
    let process = ServiceEndpoints {
        actor: Actor::new(manager, "endpoint-controller"),
        services: services.clone(),
        pods: pods.clone(),
        endpoints: endpoints.clone(),
        slices: slices.clone(),
    };
    let controller = Controller::keyed(manager, "endpoints", process)
        .on(&services, |change| [change.key()])
        .on(&endpoints, |change| [change.key()])
        .on(&slices, service_of)
        .on(&pods, move |change| selecting(change, &services));
    manager.add(controller);
}

struct ServiceEndpoints {
    actor: Actor,
    services: Informer<Service>,
    pods: Informer<Pod>,
    endpoints: Informer<Endpoints>,
    slices: Informer<EndpointSlice>,
}

impl Process for ServiceEndpoints {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(service) = self.services.get(key) else {
            self.clear(key).await?;
            return Ok(Action::Await);
        };
        if service.metadata.deletion_timestamp.is_none() && address::is_managed(&service) {
            let result = self.sync(&service).await;
            match result {
                Err(error) if namespace_leaves(&error) => {}
                other => other?,
            }
        }
        Ok(Action::Await)
    }
}

impl ServiceEndpoints {
    async fn sync(&self, service: &Service) -> Result<(), kube::Error> {
        let namespace = service.namespace().unwrap_or_default();
        let chosen = self
            .pods
            .filter(|pod| pod.metadata.namespace.as_deref() == Some(&namespace) && address::selects(service, pod));
        let backends = address::backends(service, &chosen.iter().map(|pod| &**pod).collect::<Vec<_>>());
        let present = self.endpoints.get(&ObjectKey::of(service));
        if let Some(endpoints) = subsets::changed(service, &backends, present.as_deref()) {
            self.write_endpoints(&endpoints, present.is_some()).await?;
        }
        let known = slices::kept_by(slices::MANAGER, &self.slices, &ObjectKey::of(service));
        let changes = slices::changes(service, &backends, &known.iter().map(|slice| &**slice).collect::<Vec<_>>());
        changes.write(&self.actor).await
    }

    async fn write_endpoints(&self, endpoints: &Endpoints, exists: bool) -> Result<(), kube::Error> {
        if exists {
            return self.actor.replace(endpoints).await.map(drop);
        }
        match self.actor.create(endpoints).await {
            // Somebody made them meanwhile; their arrival brings us back here.
            Err(error) if exists_already(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Slices go by their owner reference; Endpoints have none.
    async fn clear(&self, key: &ObjectKey) -> Result<(), kube::Error> {
        let Some(endpoints) = self.endpoints.get(key) else { return Ok(()) };
        let (label, value) = ENDPOINTS_MANAGED_BY;
        if endpoints.labels().get(label).is_none_or(|manager| manager != value) {
            return Ok(());
        }
        // The cache of Services may be behind that of Endpoints.
        match self.actor.api::<Service>(key.namespace.as_deref()).get(&key.name).await {
            Err(error) if is_gone(&error) => self.actor.delete(&*endpoints).await.map(drop),
            other => other.map(drop),
        }
    }
}

fn service_of(change: &Change<EndpointSlice>) -> Option<ObjectKey> {
    let slice = change.object();
    let name = slice.labels().get(slices::SERVICE_NAME)?;
    Some(ObjectKey { namespace: slice.namespace(), name: name.clone() })
}

/// The Services that select the Pod now or did before.
fn selecting(change: &Change<Pod>, services: &Informer<Service>) -> Vec<ObjectKey> {
    let namespace = &change.object().metadata.namespace;
    let selects = |service: &Service| {
        &service.metadata.namespace == namespace && change.states().any(|pod| address::selects(service, pod))
    };
    services.filter(selects).iter().map(|service| ObjectKey::of(&**service)).collect()
}
