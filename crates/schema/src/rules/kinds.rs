//! Kinds with few rules.

use std::collections::HashSet;

use super::cursor::{At, count_or_percent, immutable, named, one_of, port, required, set_one_of};
use super::{admission, autoscaler, event, limits, network, quota, selector};
use crate::{FieldError, Kind, names};

/// What a key may be used for.
const KEY_USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) fn check(kind: &Kind, new: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => ingress(new, errors),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(new, old, errors),
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
    // What an object from before a rule has does not change: nothing of it may.
    for usage in spec.member("usages").items().filter(|_| old.is_none()) {
        set_one_of(&usage, &KEY_USAGES, errors);
    }
    let mut seen = HashSet::new();
    let again = spec.member("usages").items().filter(|usage| old.is_none() && !seen.insert(usage.text()));
    errors.extend(again.map(|usage| usage.again()));
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
