//! Endpoints that people keep by hand, mirrored as EndpointSlices for those who read only slices.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort as SubsetPort, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use windlass_runtime::{Action, Attempt, Controller, Error, Informer, Manager, ObjectKey, Process};

use super::slices::{self, Changes, MANAGED_BY, SERVICE_NAME};
use crate::actor::{Actor, namespace_leaves};
use crate::owners;

/// The name that clients know for who keeps mirrored slices.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The label that asks for no mirror.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation of Endpoints that are a lock rather than addresses.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that speak of the Endpoints themselves.
const ANNOTATIONS_OWN: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];
/// Most addresses of one subset that are mirrored.
const ADDRESSES_MAX: usize = 1_000;

/// Adds the controller to the manager.
pub(super) fn add(manager: &mut Manager) {
    let services = manager.informers().all::<Service>();
    let endpoints = manager.informers().all::<Endpoints>();
    let slices = manager.informers().all::<EndpointSlice>();
    let process = Mirror {
        actor: Actor::new(manager, "endpointslicemirroring-controller"),
        services: services.clone(),
        endpoints: endpoints.clone(),
        slices: slices.clone(),
    };
    let controller = Controller::keyed(manager, "endpointslicemirroring", process)
        .on(&services, |change| [change.key()])
        .on(&endpoints, |change| [change.key()])
        .on(&slices, super::service_of);
    manager.add(controller);
}

struct Mirror {
    actor: Actor,
    services: Informer<Service>,
    endpoints: Informer<Endpoints>,
    slices: Informer<EndpointSlice>,
}

impl Process for Mirror {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let service = self.services.get(key);
        let endpoints = self.endpoints.get(key).filter(|endpoints| is_mirrored(endpoints, service.as_deref()));
        let existing = slices::kept_by(MANAGER, &self.slices, key);
        let changes = changes(endpoints.as_deref(), &existing.iter().map(|slice| &**slice).collect::<Vec<_>>());
        match changes.write(&self.actor).await {
            Err(error) if namespace_leaves(&error) => {}
            other => other?,
        }
        Ok(Action::Await)
    }
}

/// Endpoints are mirrored if somebody keeps them for a Service that selects no Pods.
fn is_mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let by_hand = service.is_some_and(|service| service.spec.as_ref().is_some_and(|spec| spec.selector.is_none()));
    by_hand
        && endpoints.metadata.deletion_timestamp.is_none()
        && endpoints.labels().get(SKIP).is_none_or(|skip| skip != "true")
        && !endpoints.annotations().contains_key(LEADER)
}

/// What to write so that the mirrors show the Endpoints.
fn changes(endpoints: Option<&Endpoints>, existing: &[&EndpointSlice]) -> Changes {
    let mut changes = Changes::default();
    let mut spare: Vec<&EndpointSlice> = existing.to_vec();
    spare.sort_by_key(|slice| slice.name_any());
    for wanted in endpoints.map(mirror).unwrap_or_default() {
        let same = |slice: &&EndpointSlice| slice.address_type == wanted.address_type && slice.ports == wanted.ports;
        let Some(at) = spare.iter().position(same) else {
            changes.create.push(wanted);
            continue;
        };
        let present = spare.remove(at);
        let metadata = ObjectMeta {
            labels: wanted.metadata.labels,
            annotations: wanted.metadata.annotations,
            owner_references: wanted.metadata.owner_references,
            ..present.metadata.clone()
        };
        let updated = EndpointSlice { metadata, ..wanted };
        if updated != *present {
            changes.update.push(updated);
        }
    }
    changes.delete.extend(spare.into_iter().cloned());
    changes
}

/// One slice for every set of ports and family of addresses.
fn mirror(endpoints: &Endpoints) -> Vec<EndpointSlice> {
    let mut slices: Vec<EndpointSlice> = Vec::new();
    for subset in endpoints.subsets.iter().flatten() {
        let ports: Vec<EndpointPort> = subset.ports.iter().flatten().map(port).collect();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let waiting = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, is_ready) in ready.chain(waiting).take(ADDRESSES_MAX) {
            let Ok(ip) = address.ip.parse::<IpAddr>() else { continue };
            let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
            let found = slices
                .iter_mut()
                .find(|slice| slice.address_type == family && slice.ports.as_deref() == Some(ports.as_slice()));
            let endpoint = endpoint(address, is_ready);
            match found {
                Some(slice) => slice.endpoints.get_or_insert_default().push(endpoint),
                None => slices.push(EndpointSlice {
                    metadata: metadata(endpoints),
                    address_type: family.to_owned(),
                    endpoints: Some(vec![endpoint]),
                    ports: Some(ports.clone()),
                }),
            }
        }
    }
    slices
}

fn metadata(endpoints: &Endpoints) -> ObjectMeta {
    let mut labels = endpoints.labels().clone();
    labels.insert(SERVICE_NAME.to_owned(), endpoints.name_any());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations: BTreeMap<String, String> = endpoints.annotations().clone();
    annotations.retain(|key, _| !ANNOTATIONS_OWN.contains(&key.as_str()));
    ObjectMeta {
        generate_name: Some(format!("{}-", endpoints.name_any())),
        namespace: endpoints.namespace(),
        labels: Some(labels),
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        owner_references: Some(vec![owners::controller_reference(endpoints)]),
        ..ObjectMeta::default()
    }
}

fn port(port: &SubsetPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
        port: Some(port.port),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|hostname| !hostname.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endpoints(addresses: &[&str], waiting: &[&str]) -> Endpoints {
        let list = |addresses: &[&str]| addresses.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
        serde_json::from_value(json!({
            "metadata": {"name": "db", "namespace": "ns", "uid": "e", "labels": {"tier": "db"}},
            "subsets": [{"addresses": list(addresses), "notReadyAddresses": list(waiting), "ports": [{"port": 5432}]}],
        }))
        .unwrap()
    }

    fn service(spec: serde_json::Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "db", "namespace": "ns"}, "spec": spec})).unwrap()
    }

    #[test]
    fn only_endpoints_of_services_without_selector_are_mirrored() {
        let mut endpoints = endpoints(&["10.1.2.3"], &[]);
        assert!(is_mirrored(&endpoints, Some(&service(json!({})))));
        assert!(!is_mirrored(&endpoints, None));
        assert!(!is_mirrored(&endpoints, Some(&service(json!({"selector": {"app": "db"}})))));
        endpoints.labels_mut().insert(SKIP.to_owned(), "true".to_owned());
        assert!(!is_mirrored(&endpoints, Some(&service(json!({})))));
    }

    #[test]
    fn a_mirror_follows_its_endpoints_and_goes_with_them() {
        let created = changes(Some(&endpoints(&["10.1.2.3"], &["10.1.2.4", "fe80::1"])), &[]).create;
        let shown: Vec<(&str, usize)> =
            created.iter().map(|slice| (&*slice.address_type, slice.endpoints.as_ref().unwrap().len())).collect();
        assert_eq!(shown, [("IPv4", 2), ("IPv6", 1)]);
        assert_eq!(created[0].labels()["tier"], "db");
        assert_eq!(created[0].ports.as_ref().unwrap()[0].port, Some(5432));

        let present = changes(Some(&endpoints(&["10.1.2.3"], &[])), &[]).create.remove(0);
        let same = changes(Some(&endpoints(&["10.1.2.3"], &[])), &[&present]);
        assert_eq!(same, Changes::default());
        let moved = changes(Some(&endpoints(&["10.2.3.4"], &[])), &[&present]);
        assert_eq!(moved.update[0].endpoints.as_ref().unwrap()[0].addresses, ["10.2.3.4"]);
        assert_eq!(changes(None, &[&present]).delete, [present]);
    }
}
