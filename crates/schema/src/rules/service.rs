//! Services and their endpoints.

use std::{collections::HashSet, net::IpAddr};

use serde_json::Value;

use super::address::{ip, range};
use super::cursor::{At, immutable, named, one_of, port, port_or_name, required};
use super::metadata;
use crate::{FieldError, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(super) fn service(service: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = service.member("spec");
    let (r#type, ports) = (spec.member("type"), spec.member("ports"));
    let is_external = r#type.text() == "ExternalName";
    let is_headless = spec.member("clusterIP").text() == "None";
    one_of(&r#type, &TYPES, errors);
    if ports.is_absent() && !is_external && !is_headless {
        errors.push(ports.missing(""));
    }
    if is_external {
        let name = spec.member("externalName");
        required(&name, errors);
        // A dot at the end says that the name is complete.
        let plain = name.text().strip_suffix('.').unwrap_or(name.text());
        let wrong = if plain.is_empty() { Vec::new() } else { names::subdomain(plain) };
        errors.extend(wrong.into_iter().map(|detail| FieldError::invalid(name.path.clone(), plain, detail)));
    }
    if is_headless && matches!(r#type.text(), "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {} services", r#type.text());
        errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", detail));
    }
    check_ports(&ports, errors);
    metadata::labels(&spec.member("selector"), errors);
    one_of(&spec.member("sessionAffinity"), &["ClientIP", "None"], errors);
    one_of(&spec.member("internalTrafficPolicy"), &["Cluster", "Local"], errors);
    one_of(&spec.member("externalTrafficPolicy"), &["Cluster", "Local"], errors);
    one_of(&spec.member("ipFamilyPolicy"), &["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    for family in spec.member("ipFamilies").items() {
        if !["IPv4", "IPv6"].contains(&family.text()) {
            errors.push(FieldError::not_supported(family.path.clone(), family.text(), &["IPv4", "IPv6"]));
        }
    }
    external_addresses(&spec, old, errors);
    balancer(service, errors);
    if let Some(old) = old.filter(|_| !is_external) {
        keep_address(&spec, &old.member("spec"), errors);
    }
}

/// Addresses from outside, and those that may come in. What an update does not change stays as it is.
fn external_addresses(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let is_new = |one: &At<'_>, list: &str| {
        let old = old.and_then(|old| old.value.pointer(&format!("/spec/{list}"))?.as_array());
        !old.is_some_and(|old| old.contains(one.value))
    };
    for address in spec.member("externalIPs").items() {
        let before = errors.len();
        if is_new(&address, "externalIPs") {
            ip(&address, errors);
        }
        if errors.len() == before {
            reachable(&address, errors);
        }
    }
    // Errors spell it so.
    let ranges = spec.member("loadBalancerSourceRanges").renamed("spec.LoadBalancerSourceRanges");
    if !ranges.is_absent() && spec.member("type").text() != "LoadBalancer" {
        errors.push(ranges.forbidden("may only be used when `type` is 'LoadBalancer'"));
    }
    for one in ranges.items().filter(|one| is_new(one, "loadBalancerSourceRanges")) {
        // Spaces around them are from a time when they were one text.
        let trimmed = Value::from(one.text().trim());
        range(&At { path: one.path.clone(), value: &trimmed }, errors);
    }
}

/// What a load balancer reports, of which there is one only for Services that ask for it.
pub(super) fn balancer(service: &At<'_>, errors: &mut Vec<FieldError>) {
    let ingress = service.at("status.loadBalancer.ingress");
    if service.at("spec.type").text() != "LoadBalancer" && !ingress.is_absent() {
        return errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    for point in ingress.items() {
        let (address, mode, host) = (point.member("ip"), point.member("ipMode"), point.member("hostname"));
        if !address.is_absent() {
            ip(&address, errors);
        }
        match (address.is_absent(), mode.value.is_null()) {
            (false, true) => errors.push(mode.missing("must be specified when `ip` is set")),
            (true, false) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
            _ => one_of(&mode, &["Proxy", "VIP"], errors),
        }
        named(&host, names::subdomain, errors);
        if host.text().parse::<IpAddr>().is_ok() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
    }
}

fn check_ports(ports: &At<'_>, errors: &mut Vec<FieldError>) {
    let needs_names = ports.items().nth(1).is_some();
    let mut seen = HashSet::new();
    for entry in ports.items() {
        let name = entry.member("name");
        if needs_names {
            required(&name, errors);
        }
        named(&name, names::label, errors);
        if !name.is_absent() && !seen.insert(name.text()) {
            errors.push(FieldError::duplicate(name.path.clone(), name.value.clone()));
        }
        let number = entry.member("port");
        if number.value.is_null() {
            errors.push(FieldError::invalid(number.path, 0, "must be between 1 and 65535, inclusive"));
        } else {
            port(&number, errors);
        }
        required(&entry.member("protocol"), errors);
        one_of(&entry.member("protocol"), &PROTOCOLS, errors);
        port_or_name(&entry.member("targetPort"), errors);
    }
    let identity = |entry: &At<'_>| (entry.member("port").int(), entry.member("protocol").text().to_owned());
    let mut seen = HashSet::new();
    for entry in ports.items() {
        if !seen.insert(identity(&entry)) {
            let value =
                serde_json::json!({"protocol": entry.member("protocol").text(), "port": entry.member("port").value});
            errors.push(FieldError::duplicate(entry.path, value));
        }
    }
}

/// The address of a Service stays, once it has one; to leave it out is to keep it.
fn keep_address(spec: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let (new_ip, old_ip) = (spec.member("clusterIP"), old.member("clusterIP"));
    let had_address = !old_ip.is_absent() && old.member("type").text() != "ExternalName";
    if had_address && !new_ip.is_absent() && new_ip.text() != old_ip.text() {
        let ips = if spec.member("clusterIPs").is_absent() {
            serde_json::json!([new_ip.text()])
        } else {
            spec.member("clusterIPs").value.clone()
        };
        errors.push(FieldError::invalid("spec.clusterIPs[0]", ips, "may not change once set"));
    }
}

pub(super) fn endpoints(endpoints: &At<'_>, errors: &mut Vec<FieldError>) {
    for subset in endpoints.member("subsets").items() {
        let (ready, not_ready) = (subset.member("addresses"), subset.member("notReadyAddresses"));
        if ready.is_absent() && not_ready.is_absent() {
            errors.push(subset.missing("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in ready.items().chain(not_ready.items()) {
            ip(&address.member("ip"), errors);
            named(&address.member("hostname"), names::label, errors);
            named(&address.member("nodeName"), names::subdomain, errors);
            reachable(&address.member("ip"), errors);
        }
        let ports = subset.member("ports");
        let needs_names = ports.items().nth(1).is_some();
        for entry in ports.items() {
            if needs_names {
                required(&entry.member("name"), errors);
            }
            named(&entry.member("name"), names::label, errors);
            let number = entry.member("port");
            if !(1..=65_535).contains(&number.int().unwrap_or_default()) {
                let shown = number.int().unwrap_or_default();
                errors.push(FieldError::invalid(number.path, shown, "must be between 1 and 65535, inclusive"));
            }
            required(&entry.member("protocol"), errors);
            one_of(&entry.member("protocol"), &PROTOCOLS, errors);
        }
    }
}

pub(super) fn endpoint_slice(slice: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let address_type = slice.member("addressType");
    required(&address_type, errors);
    one_of(&address_type, &["FQDN", "IPv4", "IPv6"], errors);
    if let Some(old) = old {
        immutable(slice, old, &["addressType"], errors);
    }
    for endpoint in slice.member("endpoints").items() {
        let addresses = endpoint.member("addresses");
        if addresses.is_absent() {
            errors.push(addresses.missing("must contain at least 1 address"));
        }
        for address in addresses.items() {
            address_of(address_type.text(), &addresses, &address, errors);
        }
        named(&endpoint.member("hostname"), names::label, errors);
        named(&endpoint.member("nodeName"), names::subdomain, errors);
    }
    let mut seen = HashSet::new();
    for entry in slice.member("ports").items() {
        let name = entry.member("name");
        named(&name, names::label, errors);
        if !seen.insert(name.text()) {
            errors.push(FieldError::duplicate(name.path.clone(), name.text()));
        }
        let number = entry.member("port");
        if number.int().is_some_and(|number| !(0..=65_535).contains(&number)) {
            errors.push(number.invalid("must be between 1 and 65535, inclusive"));
        }
        let protocol = entry.member("protocol");
        if !protocol.value.is_null() && !PROTOCOLS.contains(&protocol.text()) {
            errors.push(FieldError::not_supported(protocol.path.clone(), protocol.text(), &PROTOCOLS));
        }
    }
}

/// An address of the type that the slice has; what is wrong with the family is said of the list.
fn address_of(r#type: &str, list: &At<'_>, address: &At<'_>, errors: &mut Vec<FieldError>) {
    let parsed = address.text().parse::<IpAddr>();
    match (r#type, parsed) {
        ("IPv4" | "IPv6", Err(_)) => ip(address, errors),
        ("IPv4" | "IPv6", Ok(parsed)) => {
            if parsed.is_ipv4() != (r#type == "IPv4") {
                let detail = format!("must be an {type} address", type = r#type);
                errors.push(FieldError::invalid(list.path.clone(), address.text(), detail));
            }
            reachable(address, errors);
        }
        _ => {}
    }
}

/// An address that others can reach. Unlike in Kubernetes it may be a loopback address: Pods of an embedded cluster have
/// such.
fn reachable(at: &At<'_>, errors: &mut Vec<FieldError>) {
    let invalid = |detail: &str| FieldError::invalid(at.path.clone(), at.text(), detail);
    let Ok(address) = at.text().parse::<IpAddr>() else {
        return errors.push(invalid("must be a valid IP address"));
    };
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
    };
    let rules = [
        (address.is_unspecified(), format!("may not be unspecified ({})", at.text())),
        (is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (is_link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ];
    errors.extend(rules.iter().filter(|(broken, _)| *broken).map(|(_, detail)| invalid(detail)));
}
