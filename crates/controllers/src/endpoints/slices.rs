//! EndpointSlices of a Service: which to make, change and delete.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use windlass_runtime::{Informer, ObjectKey};

use super::address::{Backend, Port, by_ports};
use crate::actor::Actor;
use crate::owners;

/// The label that names the Service of a slice.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that names who keeps the slice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// What this controller writes there: the name that clients know.
pub(crate) const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Most endpoints in one slice.
pub(crate) const ENDPOINTS_MAX: usize = 100;

/// What to write about the slices of one Service.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) create: Vec<EndpointSlice>,
    pub(crate) update: Vec<EndpointSlice>,
    pub(crate) delete: Vec<EndpointSlice>,
}

impl Changes {
    /// Writes them.
    pub(super) async fn write(&self, actor: &Actor) -> Result<(), kube::Error> {
        for slice in &self.create {
            actor.create(slice).await?;
        }
        for slice in &self.update {
            actor.replace(slice).await?;
        }
        for slice in &self.delete {
            actor.delete(slice).await?;
        }
        Ok(())
    }
}

/// The slices of the Service `key` that `manager` keeps.
pub(super) fn kept_by(manager: &str, slices: &Informer<EndpointSlice>, key: &ObjectKey) -> Vec<Arc<EndpointSlice>> {
    slices.filter(|slice| {
        slice.metadata.namespace == key.namespace
            && slice.labels().get(SERVICE_NAME) == Some(&key.name)
            && slice.labels().get(MANAGED_BY).is_some_and(|known| known == manager)
    })
}

/// Compares the slices that exist (all managed by this controller) with what the backends ask for.
pub(crate) fn changes(service: &Service, backends: &[Backend<'_>], existing: &[&EndpointSlice]) -> Changes {
    let mut changes = Changes::default();
    let mut spare: Vec<&EndpointSlice> = existing.to_vec();
    // Where two say the same, the older one stays.
    spare.sort_by_key(|slice| (slice.creation_timestamp(), slice.name_any()));
    let mut groups = by_ports(backends);
    if groups.is_empty() {
        // An empty slice tells "no endpoints" from "not looked at yet".
        groups.insert(spare.first().map(|slice| ports_of(slice)).unwrap_or_default(), vec![]);
    }
    for (ports, members) in groups {
        let mut mine = take_with_ports(&mut spare, &ports);
        for endpoints in pack(members.iter().map(|backend| endpoint(backend)).collect(), &mut mine) {
            let wanted = slice(service, &ports, endpoints);
            match mine.pop() {
                None => changes.create.push(wanted),
                Some(present) => {
                    let updated = overwrite(present, wanted);
                    if !is_same(&updated, present) {
                        changes.update.push(updated);
                    }
                }
            }
        }
        changes.delete.extend(mine.into_iter().cloned());
    }
    changes.delete.extend(spare.into_iter().cloned());
    changes
}

/// Distributes endpoints over slices so that an endpoint stays in the slice where it is, and orders `present` so that
/// the slice to be overwritten by each chunk is popped with it.
fn pack(endpoints: Vec<Endpoint>, present: &mut Vec<&EndpointSlice>) -> Vec<Vec<Endpoint>> {
    let mut place: HashMap<String, usize> = HashMap::new();
    for (index, slice) in present.iter().enumerate() {
        let keys = slice.endpoints.iter().flatten().map(key);
        keys.for_each(|key| _ = place.entry(key).or_insert(index));
    }
    let mut chunks: Vec<Vec<Endpoint>> = vec![vec![]; present.len()];
    let mut homeless = vec![];
    for endpoint in endpoints {
        match place.get(&key(&endpoint)).filter(|index| chunks[**index].len() < ENDPOINTS_MAX) {
            Some(index) => chunks[*index].push(endpoint),
            None => homeless.push(endpoint),
        }
    }
    for endpoint in homeless {
        match chunks.iter_mut().find(|chunk| chunk.len() < ENDPOINTS_MAX) {
            Some(chunk) => chunk.push(endpoint),
            None => chunks.push(vec![endpoint]),
        }
    }
    if chunks.is_empty() {
        chunks.push(vec![]);
    }
    // Emptied slices go, except the last one.
    let mut paired: Vec<(Vec<Endpoint>, Option<&EndpointSlice>)> =
        chunks.into_iter().enumerate().map(|(index, chunk)| (chunk, present.get(index).copied())).collect();
    let full = paired.iter().filter(|(chunk, _)| !chunk.is_empty()).count();
    paired.sort_by_key(|(chunk, _)| chunk.is_empty());
    let kept: Vec<_> = paired.drain(..full.max(1)).collect();
    let (chunks, mut reused): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
    // `pop` takes from the end: unused ones first, then in reverse order of the chunks.
    reused.reverse();
    *present = paired.into_iter().filter_map(|(_, slice)| slice).chain(reused.into_iter().flatten()).collect();
    chunks
}

fn key(endpoint: &Endpoint) -> String {
    let uid = endpoint.target_ref.as_ref().and_then(|target| target.uid.clone()).unwrap_or_default();
    format!("{uid}/{}", endpoint.addresses.join(","))
}

fn take_with_ports<'a>(slices: &mut Vec<&'a EndpointSlice>, ports: &[Port]) -> Vec<&'a EndpointSlice> {
    let (mine, others) = slices.drain(..).partition(|slice| ports_of(slice) == ports);
    *slices = others;
    mine
}

fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let port = |port: &EndpointPort| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port.unwrap_or(0),
        app_protocol: port.app_protocol.clone(),
    };
    slice.ports.iter().flatten().map(port).collect()
}

fn slice(service: &Service, ports: &[Port], endpoints: Vec<Endpoint>) -> EndpointSlice {
    let port = |port: &Port| EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.number),
        app_protocol: port.app_protocol.clone(),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", service.name_any())),
            namespace: service.namespace(),
            labels: Some(labels(service)),
            owner_references: Some(vec![owners::controller_reference(service)]),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints),
        ports: Some(ports.iter().map(port).collect()),
    }
}

/// Whether two slices say the same: the API has no list where it was given an empty one.
fn is_same(one: &EndpointSlice, other: &EndpointSlice) -> bool {
    let plain = |slice: &EndpointSlice| {
        let mut slice = slice.clone();
        slice.endpoints.take_if(|endpoints| endpoints.is_empty());
        slice.ports.take_if(|ports| ports.is_empty());
        slice
    };
    plain(one) == plain(other)
}

/// The labels of the Service, and the three that say what the slice is.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS);
    labels.insert(SERVICE_NAME.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

fn overwrite(present: &EndpointSlice, wanted: EndpointSlice) -> EndpointSlice {
    let metadata = ObjectMeta {
        labels: wanted.metadata.labels,
        owner_references: wanted.metadata.owner_references,
        ..present.metadata.clone()
    };
    EndpointSlice { metadata, ..wanted }
}

fn endpoint(backend: &Backend<'_>) -> Endpoint {
    Endpoint {
        addresses: vec![backend.address.clone()],
        conditions: Some(EndpointConditions {
            ready: Some(backend.ready),
            serving: Some(backend.readiness.serving),
            terminating: Some(backend.readiness.terminating),
        }),
        hostname: backend.hostname.clone(),
        node_name: backend.node_name(),
        target_ref: Some(backend.reference()),
        ..Endpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::endpoints::address::backends;

    fn service() -> Service {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns", "uid": "s"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http", "name": "http"}]}}))
        .unwrap()
    }

    fn pod(number: usize, port: i32, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": format!("p{number}"), "namespace": "ns", "uid": format!("u{number}"), "labels": {"app": "web"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": port}]}]},
            "status": {"phase": "Running", "podIP": format!("127.64.{}.{}", 128 + number / 256, number % 256),
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}}))
        .unwrap()
    }

    fn named(mut slice: EndpointSlice, name: &str) -> EndpointSlice {
        slice.metadata.name = Some(name.to_owned());
        slice
    }

    fn decide(pods: &[Pod], existing: &[EndpointSlice]) -> Changes {
        let pods: Vec<&Pod> = pods.iter().collect();
        let existing: Vec<&EndpointSlice> = existing.iter().collect();
        changes(&service(), &backends(&service(), &pods), &existing)
    }

    #[test]
    fn slices_hold_at_most_a_hundred() {
        let pods: Vec<Pod> = (0..250).map(|number| pod(number, 8080, true)).collect();
        let changes = decide(&pods, &[]);
        let sizes: Vec<usize> = changes.create.iter().map(|slice| slice.endpoints.as_ref().unwrap().len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
    }

    #[test]
    fn nothing_is_written_when_nothing_changed() {
        let pods = [pod(1, 8080, true), pod(2, 9090, false)];
        let created = decide(&pods, &[]).create;
        assert_eq!(created.len(), 2, "one slice for each set of ports");
        let existing: Vec<_> = created.into_iter().zip(["a", "b"]).map(|(slice, name)| named(slice, name)).collect();
        assert_eq!(decide(&pods, &existing), Changes::default());
    }

    #[test]
    fn a_service_without_pods_has_one_empty_slice() {
        let empty = decide(&[], &[]);
        assert_eq!(empty.create.len(), 1);
        let full = [named(decide(&[pod(1, 8080, true)], &[]).create.remove(0), "a")];
        let emptied = decide(&[], &full);
        assert_eq!(emptied.update.len(), 1);
        assert_eq!(emptied.update[0].endpoints, Some(vec![]));
        assert_eq!(emptied.update[0].ports, full[0].ports);
        let mut stored = named(empty.create[0].clone(), "a");
        (stored.endpoints, stored.ports) = (None, None);
        assert_eq!(decide(&[], &[stored]), Changes::default(), "as the API tells it");
    }

    #[test]
    fn a_change_touches_only_the_slice_it_concerns() {
        let mut pods: Vec<Pod> = (0..150).map(|number| pod(number, 8080, true)).collect();
        let created = decide(&pods, &[]).create;
        let existing: Vec<_> = created.into_iter().zip(["a", "b"]).map(|(slice, name)| named(slice, name)).collect();
        pods.remove(3);
        let changes = decide(&pods, &existing);
        assert_eq!((changes.create.len(), changes.update.len(), changes.delete.len()), (0, 1, 0));
        assert_eq!(changes.update[0].name_any(), "a");
        let in_second = |pod: &Pod| {
            let targets = existing[1].endpoints.iter().flatten().filter_map(|endpoint| endpoint.target_ref.as_ref());
            targets.into_iter().any(|target| target.uid == pod.metadata.uid)
        };
        pods.retain(in_second);
        let changes = decide(&pods, &existing);
        assert_eq!((changes.update.len(), changes.delete.len()), (0, 1));
    }
}
