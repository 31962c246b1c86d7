//! Pods and their templates.

use std::collections::HashSet;

use serde_json::Value;

use super::cursor::{At, named, not_negative, one_of, port, port_or_name, required, unique};
use super::{metadata, pod_resize, pod_resources, pod_sysctl, pod_update, toleration};
use crate::{FieldError, names, quantity};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// The addresses that a node reports.
pub(super) fn addresses(pod: &At<'_>, errors: &mut Vec<FieldError>) {
    for list in ["podIPs", "hostIPs"] {
        pod.member("status").member(list).items().for_each(|entry| {
            // The item is named, not its member.
            super::service::ip(&At { path: entry.path.clone(), value: entry.member("ip").value }, errors);
        });
    }
}

pub(super) fn pod(pod: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let pod_spec = pod.member("spec");
    spec(&pod_spec, errors);
    for image in pod_spec.member("volumes").items().map(|volume| volume.member("image")) {
        required_if(&image, "reference", errors);
    }
    if let Some(old) = old {
        pod_update::check(&pod_spec, &old.member("spec"), errors);
    }
}

/// Checks a template of Pods.
pub(super) fn template(template: &At<'_>, errors: &mut Vec<FieldError>) {
    // Errors name neither by its full path.
    let moved =
        |name: &str| At { path: template.member(name).path, value: template.member("metadata").member(name).value };
    metadata::labels(&moved("labels"), errors);
    metadata::annotations(&moved("annotations"), errors);
    spec(&template.member("spec"), errors);
}

fn spec(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let volumes = volumes(&spec.member("volumes"), errors);
    required(&spec.member("containers"), errors);
    let mut seen = HashSet::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.member(list).items() {
            check_container(&container, &volumes, errors);
            pod_resize::policies(&container, list, spec.member("restartPolicy").text(), errors);
            let name = container.member("name");
            if !name.is_absent() && !seen.insert(name.text()) {
                errors.push(FieldError::duplicate(name.path, name.value.clone()));
            }
        }
    }
    one_of(&spec.member("restartPolicy"), &RESTART_POLICIES, errors);
    one_of(&spec.member("dnsPolicy"), &DNS_POLICIES, errors);
    metadata::labels(&spec.member("nodeSelector"), errors);
    named(&spec.member("serviceAccountName"), names::subdomain, errors);
    named(&spec.member("nodeName"), names::subdomain, errors);
    named(&spec.member("hostname"), names::label, errors);
    named(&spec.member("subdomain"), names::label, errors);
    named(&spec.member("priorityClassName"), names::subdomain, errors);
    pod_resources::check(spec, errors);
    toleration::check(&spec.member("tolerations"), errors);
    pod_sysctl::check(&spec.at("securityContext.sysctls"), errors);
    let deadline = spec.member("activeDeadlineSeconds");
    if deadline.int().is_some_and(|seconds| seconds < 1) {
        errors.push(deadline.invalid("must be between 1 and 2147483647, inclusive"));
    }
}

fn volumes<'a>(volumes: &At<'a>, errors: &mut Vec<FieldError>) -> HashSet<&'a str> {
    for volume in volumes.items() {
        let name = volume.member("name");
        required(&name, errors);
        named(&name, names::label, errors);
        one_of(&volume.at("image.pullPolicy"), &PULL_POLICIES, errors);
        let sources = volume
            .value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, source)| *name != "name" && !source.is_null());
        let mut sources = sources.map(|(name, _)| name);
        if sources.next().is_none() {
            errors.push(volume.missing("must specify a volume type"));
        }
        errors.extend(sources.map(|name| volume.member(name).forbidden("may not specify more than 1 volume type")));
    }
    unique(volumes, "name", errors);
    volumes.items().map(|volume| volume.member("name").text()).collect()
}

fn check_container(container: &At<'_>, volumes: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    let (name, image) = (container.member("name"), container.member("image"));
    required(&name, errors);
    named(&name, names::label, errors);
    required(&image, errors);
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
    one_of(&container.member("imagePullPolicy"), &PULL_POLICIES, errors);
    one_of(&container.member("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"], errors);
    ports(&container.member("ports"), errors);
    environment(container, errors);
    mounts(&container.member("volumeMounts"), volumes, errors);
    resources(&container.member("resources"), errors);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe(&container.member(name), name != "readinessProbe", errors);
    }
    for name in ["postStart", "preStop"] {
        handler(&container.at("lifecycle").member(name), errors);
    }
}

fn ports(ports: &At<'_>, errors: &mut Vec<FieldError>) {
    for entry in ports.items() {
        named(&entry.member("name"), names::port_name, errors);
        let number = entry.member("containerPort");
        match number.int() {
            None | Some(0) => errors.push(number.missing("")),
            Some(_) => port(&number, errors),
        }
        let host_port = entry.member("hostPort");
        if host_port.int() != Some(0) {
            port(&host_port, errors);
        }
        one_of(&entry.member("protocol"), &PROTOCOLS, errors);
    }
    unique(ports, "name", errors);
}

fn environment(container: &At<'_>, errors: &mut Vec<FieldError>) {
    for variable in container.member("env").items() {
        let (name, source) = (variable.member("name"), variable.member("valueFrom"));
        required(&name, errors);
        if !name.text().chars().all(|character| character.is_ascii_graphic() || character == ' ')
            || name.text().contains('=')
        {
            errors.push(name.invalid(
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
            ));
        }
        if source.value.is_null() {
            continue;
        }
        let sources = source.value.as_object().map_or(0, serde_json::Map::len);
        if sources != 1 {
            let detail = if sources == 0 {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            } else {
                "may not have more than one field specified at a time"
            };
            errors.push(FieldError::invalid(source.path.clone(), "", detail));
        } else if !variable.member("value").is_absent() {
            errors.push(FieldError::invalid(source.path.clone(), "", "may not be specified when `value` is not empty"));
        }
    }
}

fn mounts(mounts: &At<'_>, volumes: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    let mut paths = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.member("name"), mount.member("mountPath"));
        if name.is_absent() {
            errors.push(name.missing(""));
        } else if !volumes.contains(name.text()) {
            errors.push(FieldError::not_found(name.path, name.value.clone()));
        }
        required(&path, errors);
        if !path.is_absent() && !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
    }
}

pub(super) fn resources(resources: &At<'_>, errors: &mut Vec<FieldError>) {
    let (limits, requests) = (resources.member("limits"), resources.member("requests"));
    for (_, amount) in limits.entries().chain(requests.entries()) {
        if quantity::nanos(amount.text()).is_some_and(|nanos| nanos < 0) {
            errors.push(amount.invalid("must be greater than or equal to 0"));
        }
    }
    for (name, request) in requests.entries() {
        let Some(limit) = limits.value.get(name).and_then(Value::as_str) else { continue };
        if quantity::nanos(request.text()) > quantity::nanos(limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(FieldError::invalid(requests.path.clone(), request.text(), detail));
        }
    }
}

/// A probe that restarts the container succeeds at the first success.
fn probe(probe: &At<'_>, restarts: bool, errors: &mut Vec<FieldError>) {
    if probe.value.is_null() {
        return;
    }
    handler(probe, errors);
    not_negative(
        probe,
        &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
        errors,
    );
    let threshold = probe.member("successThreshold");
    if restarts && threshold.int().is_some_and(|threshold| threshold != 1) {
        errors.push(threshold.invalid("must be 1"));
    }
}

fn handler(handler: &At<'_>, errors: &mut Vec<FieldError>) {
    if handler.value.is_null() {
        return;
    }
    let handlers: Vec<At<'_>> =
        HANDLERS.iter().map(|name| handler.member(name)).filter(|at| !at.value.is_null()).collect();
    if handlers.is_empty() {
        errors.push(handler.missing("must specify a handler type"));
    }
    errors.extend(handlers.iter().skip(1).map(|at| at.forbidden("may not specify more than 1 handler type")));
    required_if(&handler.member("exec"), "command", errors);
    for name in ["httpGet", "tcpSocket"] {
        port_or_name(&handler.member(name).member("port"), errors);
    }
    one_of(&handler.at("httpGet.scheme"), &["HTTP", "HTTPS"], errors);
}

fn required_if(at: &At<'_>, name: &str, errors: &mut Vec<FieldError>) {
    if !at.value.is_null() {
        required(&at.member(name), errors);
    }
}
