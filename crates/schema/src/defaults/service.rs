//! Services.

use serde_json::{Value, json};

use super::{Object, is_empty, object_at, objects_at, set_empty};

/// How long a client stays with its endpoint: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn service(service: &mut Object) {
    let Some(spec) = object_at(service, "spec") else { return };
    set_empty(spec, "type", "ClusterIP");
    affinity(spec);
    for port in objects_at(spec, "ports") {
        set_empty(port, "protocol", "TCP");
        let is_absent = port.get("targetPort").is_none_or(|target| target.is_null() || *target == 0 || *target == "");
        if let Some(number) = port.get("port").cloned().filter(|_| is_absent) {
            port.insert("targetPort".to_owned(), number);
        }
    }
    let r#type = spec["type"].as_str().unwrap_or_default().to_owned();
    let is_open = matches!(r#type.as_str(), "LoadBalancer" | "NodePort");
    if is_open || (r#type == "ClusterIP" && !is_empty(spec, "externalIPs")) {
        set_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_open || r#type == "ClusterIP" {
        set_empty(spec, "internalTrafficPolicy", "Cluster");
    }
    if r#type == "LoadBalancer" {
        set_empty(spec, "allocateLoadBalancerNodePorts", true);
        ingress_mode(service);
    }
}

fn affinity(spec: &mut Object) {
    set_empty(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "None" {
        spec.remove("sessionAffinityConfig");
    }
    let has_timeout =
        spec.get("sessionAffinityConfig").is_some_and(|config| config["clientIP"]["timeoutSeconds"].is_i64());
    if spec["sessionAffinity"] == "ClientIP" && !has_timeout {
        let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
        spec.insert("sessionAffinityConfig".to_owned(), config);
    }
}

fn ingress_mode(service: &mut Object) {
    let balancer = service.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
    let Some(balancer) = balancer.and_then(Value::as_object_mut) else { return };
    for ingress in objects_at(balancer, "ingress") {
        if !is_empty(ingress, "ip") {
            set_empty(ingress, "ipMode", "VIP");
        }
    }
}
