//! The Endpoints object of a Service, for clients that do not read EndpointSlices yet.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::address::{Backend, Port, by_ports};

/// Most addresses in one Endpoints object; slices have no such limit.
const ADDRESSES_MAX: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

const HEADLESS: &str = "service.kubernetes.io/headless";

/// What the Endpoints of the Service should be; `None` when `present` is right already.
pub(crate) fn changed(service: &Service, backends: &[Backend<'_>], present: Option<&Endpoints>) -> Option<Endpoints> {
    // Terminating Pods have no place in this older form, unless the Service takes every address.
    let wanted: Vec<Backend<'_>> = backends
        .iter()
        .filter(|backend| !backend.readiness.terminating || backend.ready)
        .take(ADDRESSES_MAX)
        .cloned()
        .collect();
    let mut endpoints = present.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.namespace(),
            ..Default::default()
        },
        subsets: None,
    });
    let subsets: Vec<EndpointSubset> =
        by_ports(&wanted).into_iter().map(|(ports, members)| subset(&ports, &members)).collect();
    endpoints.subsets = (!subsets.is_empty()).then_some(subsets);
    endpoints.metadata.labels = Some(labels(service));
    if backends.len() > ADDRESSES_MAX {
        endpoints.annotations_mut().insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    } else if let Some(annotations) = &mut endpoints.metadata.annotations {
        annotations.remove(OVER_CAPACITY);
    }
    (Some(&endpoints) != present).then_some(endpoints)
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    let (label, value) = super::ENDPOINTS_MANAGED_BY;
    labels.insert(label.to_owned(), value.to_owned());
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

fn subset(ports: &[Port], members: &[&Backend<'_>]) -> EndpointSubset {
    let addresses = |ready: bool| {
        let chosen: Vec<EndpointAddress> =
            members.iter().filter(|backend| backend.ready == ready).map(|backend| address(backend)).collect();
        (!chosen.is_empty()).then_some(chosen)
    };
    let port = |port: &Port| EndpointPort {
        name: (!port.name.is_empty()).then(|| port.name.clone()),
        port: port.number,
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    };
    EndpointSubset {
        addresses: addresses(true),
        not_ready_addresses: addresses(false),
        ports: (!ports.is_empty()).then(|| ports.iter().map(port).collect()),
    }
}

fn address(backend: &Backend<'_>) -> EndpointAddress {
    EndpointAddress {
        ip: backend.address.clone(),
        hostname: backend.hostname.clone(),
        node_name: backend.node_name(),
        target_ref: Some(backend.reference()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::endpoints::address::backends;

    fn pod(name: &str, ready: &str, deleted: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "deletionTimestamp": deleted},
            "spec": {"containers": []},
            "status": {"podIP": format!("127.64.128.{}", name.len()),
                "conditions": [{"type": "Ready", "status": ready}]}}))
        .unwrap()
    }

    #[test]
    fn addresses_are_sorted_by_readiness() {
        let pods = [pod("a", "True", None), pod("bb", "False", None), pod("ccc", "True", Some("2026-01-01T00:00:00Z"))];
        let pods: Vec<&Pod> = pods.iter().collect();
        let check = |publish: bool, ready: &[&str], not_ready: &[&str]| {
            let service: Service = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
                "selector": {"app": "web"}, "ports": [{"port": 80}], "publishNotReadyAddresses": publish}}))
            .unwrap();
            let endpoints = changed(&service, &backends(&service, &pods), None).unwrap();
            let subset = &endpoints.subsets.as_ref().unwrap()[0];
            let names = |addresses: &Option<Vec<EndpointAddress>>| -> Vec<String> {
                let targets = addresses.iter().flatten().filter_map(|address| address.target_ref.as_ref());
                targets.filter_map(|target| target.name.clone()).collect()
            };
            assert_eq!(
                (names(&subset.addresses), names(&subset.not_ready_addresses)),
                (ready.iter().map(|s| s.to_string()).collect(), not_ready.iter().map(|s| s.to_string()).collect())
            );
            assert_eq!(changed(&service, &backends(&service, &pods), Some(&endpoints)), None);
        };
        check(false, &["a"], &["bb"]);
        check(true, &["a", "bb", "ccc"], &[]);
    }
}
