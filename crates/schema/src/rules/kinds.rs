//! Kinds with few rules.

use super::cursor::{At, count_or_percent, immutable, named, one_of, port, required};
use super::{admission, autoscaler, event, limits, quota, selector};
use crate::{FieldError, Kind, names};

pub(super) fn check(kind: &Kind, new: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => ingress(new, errors),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(new, errors),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::autoscaler(new, old, errors),
        ("policy", "PodDisruptionBudget") => disruption_budget(new, errors),
        ("scheduling.k8s.io", "PriorityClass") => priority_class(new, old, errors),
        ("coordination.k8s.io", "Lease") => lease(new, errors),
        ("certificates.k8s.io", "CertificateSigningRequest") => signing_request(new, old, errors),
        ("admissionregistration.k8s.io", _) => admission::check(kind, new, errors),
        ("", "ResourceQuota") => quota::check(new, old, errors),
        ("", "LimitRange") => limits::limit_range(new, errors),
        ("" | "events.k8s.io", "Event") => event::event(new, old, kind.group == "events.k8s.io", errors),
        ("node.k8s.io", "RuntimeClass") => runtime_class(new, old, errors),
        _ => {}
    }
}

fn ingress(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    let (rules, default) = (spec.member("rules"), spec.member("defaultBackend"));
    if rules.is_absent() && default.value.is_null() {
        errors.push(FieldError::invalid(
            spec.path.clone(),
            rules.value.clone(),
            "either `defaultBackend` or `rules` must be specified",
        ));
    }
    backend(&default, errors);
    for rule in rules.items() {
        let host = rule.member("host");
        let plain = host.text().strip_prefix("*.").unwrap_or(host.text());
        if !plain.is_empty() {
            errors.extend(names::subdomain(plain).into_iter().map(|detail| host.invalid(detail)));
        }
        let paths = rule.at("http.paths");
        if !rule.member("http").value.is_null() {
            required(&paths, errors);
        }
        paths.items().for_each(|path| ingress_path(&path, errors));
    }
}

fn ingress_path(entry: &At<'_>, errors: &mut Vec<FieldError>) {
    let (path, path_type) = (entry.member("path"), entry.member("pathType"));
    let is_absolute = path.text().starts_with('/');
    match path_type.text() {
        "" => return errors.push(path_type.missing("pathType must be specified")),
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.push(path.wrong_text("must be an absolute path"));
            }
            let inner = ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| path.text().contains(part));
            errors.extend(inner.map(|part| path.invalid(format!("must not contain '{part}'"))));
            let last = ["/..", "/."].into_iter().filter(|end| path.text().ends_with(end));
            errors.extend(last.map(|end| path.invalid(format!("cannot end with '{end}'"))));
        }
        "ImplementationSpecific" => {
            if !path.is_absent() && !is_absolute {
                errors.push(path.invalid("must be an absolute path"));
            }
        }
        _ => one_of(&path_type, &["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    backend(&entry.member("backend"), errors);
}

fn backend(backend: &At<'_>, errors: &mut Vec<FieldError>) {
    let (service, resource) = (backend.member("service"), backend.member("resource"));
    if !service.value.is_null() && !resource.value.is_null() {
        errors.push(FieldError::invalid(backend.path.clone(), "", "cannot set both resource and service backends"));
    }
    if service.value.is_null() {
        return;
    }
    required(&service.member("name"), errors);
    let (name, number) = (service.at("port.name"), service.at("port.number"));
    match (name.is_absent(), number.int().is_none_or(|number| number == 0)) {
        (true, true) => errors.push(FieldError::required(service.path.clone(), "port name or number is required")),
        (false, false) => {
            errors.push(FieldError::invalid(service.path.clone(), "", "cannot set both port name & port number"))
        }
        (false, true) => named(&name, names::port_name, errors),
        (true, false) => port(&number, errors),
    }
}

fn network_policy(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    selector::check(&spec.member("podSelector"), errors);
    for kind in spec.member("policyTypes").items() {
        one_of(&kind, &["Ingress", "Egress"], errors);
    }
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.member(rules).items() {
            rule.member("ports").items().for_each(|port| network_port(&port, errors));
            rule.member(peers).items().for_each(|peer| network_peer(&peer, errors));
        }
    }
}

fn network_port(entry: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&entry.member("protocol"), &["TCP", "UDP", "SCTP"], errors);
    let (first, last) = (entry.member("port"), entry.member("endPort"));
    super::cursor::port_or_name(&first, errors);
    let Some(end) = last.int() else { return };
    match (first.is_set(), first.int()) {
        (false, _) => errors.push(last.invalid("may not be specified when `port` is not specified")),
        (true, None) => errors.push(last.invalid("may not be specified when `port` is non-numeric")),
        (true, Some(begin)) => {
            if end < begin {
                errors.push(last.invalid("must be greater than or equal to `port`"));
            }
            port(&last, errors);
        }
    }
}

fn network_peer(peer: &At<'_>, errors: &mut Vec<FieldError>) {
    let (pods, namespaces, block) =
        (peer.member("podSelector"), peer.member("namespaceSelector"), peer.member("ipBlock"));
    selector::check(&pods, errors);
    selector::check(&namespaces, errors);
    if block.is_set() {
        required(&block.member("cidr"), errors);
    }
    match (pods.is_set() || namespaces.is_set(), block.is_set()) {
        (false, false) => errors.push(peer.missing("must specify a peer")),
        (true, true) => errors.push(peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn disruption_budget(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    let (available, unavailable) = (spec.member("minAvailable"), spec.member("maxUnavailable"));
    if !available.value.is_null() && !unavailable.value.is_null() {
        errors.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
    }
    count_or_percent(&available, errors);
    count_or_percent(&unavailable, errors);
    selector::check(&spec.member("selector"), errors);
    one_of(&spec.member("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"], errors);
}

fn priority_class(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if object.member("value").value != old.member("value").value {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    immutable(object, old, &["preemptionPolicy"], errors);
}

fn lease(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    let duration = spec.member("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    super::cursor::not_negative(&spec, &["leaseTransitions"], errors);
}

fn signing_request(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    for name in ["usages", "signerName"] {
        required(&spec.member(name), errors);
    }
    let seconds = spec.member("expirationSeconds");
    if seconds.int().is_some_and(|seconds| seconds < 600) {
        errors.push(seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    if let Some(old) = old {
        immutable(object, old, &["spec"], errors);
    }
}

fn runtime_class(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let handler = object.member("handler");
    errors.extend(names::label(handler.text()).into_iter().map(|detail| handler.invalid(detail)));
    if let Some(old) = old {
        immutable(object, old, &["handler"], errors);
    }
}
