//! Services, their endpoints, and the network.

use super::super::cursor::At;
use super::{Warnings, address};

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const SLICE_MANAGER: &str = "endpointslice.kubernetes.io/managed-by";
const ENDPOINTS_MANAGER: &str = "endpoints.kubernetes.io/managed-by";

pub(super) fn service(service: &At<'_>, warnings: &mut Warnings) {
    let spec = service.member("spec");
    let is_external = spec.member("type").text() == "ExternalName";
    let cluster_ip = spec.member("clusterIP").text();
    let is_headless = spec.member("type").text() == "ClusterIP" && cluster_ip == "None";
    let external_ips = spec.member("externalIPs");
    if service.at("metadata.annotations").value.get(TOPOLOGY_HINTS).is_some() {
        warnings.add(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    if !["", "None"].contains(&cluster_ip) {
        spec.member("clusterIPs").items().for_each(|ip| address::ip(&ip, warnings));
    }
    if is_headless {
        headless(&spec, warnings);
    }
    external_ips.items().for_each(|ip| address::ip(&ip, warnings));
    if !external_ips.is_absent() && !is_headless && !is_external {
        warnings.add("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    address::ip(&spec.member("loadBalancerIP"), warnings);
    spec.member("loadBalancerSourceRanges").items().for_each(|range| address::cidr(&range, warnings));
    if is_external && !external_ips.is_absent() {
        warnings.add(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#);
    }
    if !is_external && !spec.member("externalName").is_absent() {
        warnings.add(r#"spec.externalName is ignored when spec.type is not "ExternalName""#);
    }
    let distribution = spec.member("trafficDistribution");
    if distribution.text() == "PreferClose" {
        warnings.about(&distribution, r#""PreferClose" is deprecated; use "PreferSameZone""#);
    }
}

fn headless(spec: &At<'_>, warnings: &mut Warnings) {
    if !spec.member("loadBalancerIP").is_absent() {
        warnings.add("spec.loadBalancerIP is ignored for headless services");
    }
    if !spec.member("externalIPs").is_absent() {
        warnings.add("spec.externalIPs is ignored for headless services");
    }
    if spec.member("sessionAffinity").text() != "None" {
        warnings.add("spec.SessionAffinity is ignored for headless services");
    }
}

/// What a controller wrote needs no look.
fn is_managed(object: &At<'_>, label: &str, controllers: &[&str]) -> bool {
    let manager = object.at("metadata.labels").value.get(label).and_then(|manager| manager.as_str());
    manager.is_some_and(|manager| controllers.contains(&manager))
}

pub(super) fn endpoints(endpoints: &At<'_>, warnings: &mut Warnings) {
    if is_managed(endpoints, ENDPOINTS_MANAGER, &["endpoint-controller"]) {
        return;
    }
    for subset in endpoints.member("subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            subset.member(list).items().for_each(|one| address::ip(&one.member("ip"), warnings));
        }
    }
}

pub(super) fn slice(slice: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    if old.is_none() && slice.member("addressType").text() == "FQDN" {
        warnings.add("spec.addressType: FQDN endpoints are deprecated");
    }
    let controllers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if !is_managed(slice, SLICE_MANAGER, &controllers) {
        let addresses = slice.member("endpoints").items().flat_map(|endpoint| endpoint.member("addresses").items());
        addresses.for_each(|address| address::ip(&address, warnings));
    }
}

pub(super) fn network_policy(policy: &At<'_>, warnings: &mut Warnings) {
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = policy.member("spec").member(list);
        for block in rules.items().flat_map(|rule| rule.member(peers).items()).map(|peer| peer.member("ipBlock")) {
            address::cidr(&block.member("cidr"), warnings);
            block.member("except").items().for_each(|range| address::cidr(&range, warnings));
        }
    }
}
