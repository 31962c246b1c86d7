//! Namespaces, priority classes, the `kubernetes` Service and the authentication facts for extensions.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::reconcile::{keep, replace_content};
use super::{Bootstrap, Wanted};
use crate::object;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
const SERVICE_PORT: u16 = 443;

pub(super) fn objects(bootstrap: &Bootstrap) -> Vec<Wanted> {
    let mut objects: Vec<Wanted> = NAMESPACES.iter().map(|name| namespace(name)).collect();
    objects.push(priority_class(
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ));
    objects.push(priority_class(
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ));
    objects.extend(service(bootstrap));
    objects.push(service_range(bootstrap));
    objects.push(extension_authentication(bootstrap));
    objects
}

fn namespace(name: &str) -> Wanted {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    Wanted::new(format!("/core/namespaces/{name}"), object, keep)
}

fn priority_class(name: &str, value: i64, description: &str) -> Wanted {
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name, "generation": 1},
        "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
    });
    Wanted::new(format!("/scheduling.k8s.io/priorityclasses/{name}"), object, keep)
}

fn service(bootstrap: &Bootstrap) -> [Wanted; 3] {
    let family = if bootstrap.service_address.is_ipv4() { "IPv4" } else { "IPv6" };
    let (address, port) = (bootstrap.endpoint.ip(), bootstrap.endpoint.port());
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": bootstrap.service_address, "clusterIPs": [bootstrap.service_address],
            "internalTrafficPolicy": "Cluster", "ipFamilies": [family], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes", "namespace": "default", "generation": 1,
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": address_type(address),
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    });
    [("/core/services", service), ("/core/endpoints", endpoints), ("/discovery.k8s.io/endpointslices", slice)]
        .map(|(prefix, object)| Wanted::new(format!("{prefix}/default/kubernetes"), object, replace_content))
}

/// The range that exists from the start. It is not repaired: others may be added beside it, never in its place.
fn service_range(bootstrap: &Bootstrap) -> Wanted {
    let object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes", "generation": 1, "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [bootstrap.service_range.to_string()]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": object::now(),
            "reason": "", "message": "Kubernetes Service CIDR is ready",
        }]},
    });
    Wanted::new("/networking.k8s.io/servicecidrs/kubernetes".to_owned(), object, keep)
}

fn address_type(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn extension_authentication(bootstrap: &Bootstrap) -> Wanted {
    let mut data = Map::new();
    if let Some(certificate) = &bootstrap.client_ca {
        data.insert("client-ca-file".to_owned(), json!(certificate));
    }
    if let Some(certificate) = &bootstrap.front_proxy_ca {
        for (key, value) in [
            ("requestheader-client-ca-file", certificate.as_str()),
            ("requestheader-allowed-names", "[\"front-proxy-client\"]"),
            ("requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
            ("requestheader-group-headers", "[\"X-Remote-Group\"]"),
            ("requestheader-uid-headers", "[\"X-Remote-Uid\"]"),
            ("requestheader-username-headers", "[\"X-Remote-User\"]"),
        ] {
            data.insert(key.to_owned(), json!(value));
        }
    }
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": Value::Object(data),
    });
    let key = "/core/configmaps/kube-system/extension-apiserver-authentication".to_owned();
    Wanted::new(key, object, replace_content)
}
