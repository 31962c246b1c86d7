//! Pods and their templates.

use std::collections::HashMap;

use serde_json::Value;

use super::cursor::{At, follows, named, one_of, set_one_of};
use super::{affinity, container, environment, metadata, pod_dns, pod_notes, pod_resources, pod_security, pod_update};
use super::{resources, spread, toleration, volume, windows};
use crate::{FieldError, names};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DEADLINE_MAX: i64 = i32::MAX as i64;

/// What the rules of the parts of a Pod ask of the whole.
pub(super) struct Whole<'a> {
    /// The spec of the Pod.
    pub(super) spec: At<'a>,
    /// The volumes in which nothing is wrong, by name.
    pub(super) volumes: HashMap<&'a str, &'a Value>,
}

impl Whole<'_> {
    /// Whether its users are those of the host.
    pub(super) fn has_host_users(&self) -> bool {
        self.spec.member("hostUsers").value != false
    }
}

/// What a node reports: names of conditions, and addresses.
pub(super) fn status(pod: &At<'_>, errors: &mut Vec<FieldError>) {
    for condition in pod.at("status.conditions").items() {
        let kind = condition.member("type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.text()) {
            // Errors spell it so.
            follows(&kind.renamed(format!("{}.Type", condition.path)), names::qualified, errors);
        }
    }
    for list in ["podIPs", "hostIPs"] {
        pod.member("status").member(list).items().for_each(|entry| {
            // The item is named, not its member.
            super::address::ip(&entry.member("ip").renamed(entry.path.clone()), errors);
        });
    }
}

pub(super) fn pod(pod: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    sound(pod, errors);
    let new = pod.member("spec");
    let Some(old) = old else { return created(pod, errors) };
    pod_notes::kept(&pod.at("metadata.annotations"), &old.at("metadata.annotations"), errors);
    pod_update::check(&new, &old.member("spec"), errors);
}

/// Checks a Pod by itself, whether it is new or not.
pub(super) fn sound(pod: &At<'_>, errors: &mut Vec<FieldError>) {
    let pod_spec = pod.member("spec");
    pod_notes::check(&pod.at("metadata.annotations"), &pod_spec, errors);
    spec(&pod_spec, Some(pod.at("metadata.name").text()), errors);
    if pod_spec.member("serviceAccountName").is_absent() {
        let sources = pod_spec.member("volumes").items().flat_map(|volume| volume.at("projected.sources").items());
        let tokens = sources.map(|source| source.member("serviceAccountToken")).filter(At::is_set);
        errors.extend(tokens.map(|token| token.forbidden("must not be specified when serviceAccountName is not set")));
    }
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| pod_spec.member(list).items());
    containers.for_each(|container| container::image_of_pod(&container, errors));
}

/// What holds for a Pod only when it comes.
fn created(pod: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = pod.member("spec");
    let (late, node) = (spec.member("ephemeralContainers"), spec.member("nodeName"));
    if !late.is_absent() {
        errors.push(late.forbidden("cannot be set on create"));
    }
    if !node.is_absent() && !spec.member("schedulingGates").is_absent() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    pod_notes::match_fields(&pod.at("metadata.annotations"), &spec, errors);
}

/// Checks a template of Pods.
pub(super) fn template(template: &At<'_>, errors: &mut Vec<FieldError>) {
    // Errors name neither by its full path.
    let moved = |name: &str| template.member("metadata").member(name).renamed(template.member(name).path);
    let (notes, pod_spec) = (moved("annotations"), template.member("spec"));
    metadata::labels(&moved("labels"), errors);
    metadata::annotations(&notes, errors);
    pod_notes::check(&notes, &pod_spec, errors);
    spec(&pod_spec, None, errors);
    pod_notes::match_fields(&notes, &pod_spec, errors);
    let late = pod_spec.member("ephemeralContainers");
    if !late.is_absent() {
        errors.push(late.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// Checks the spec of a Pod with this name, or of a template.
fn spec(spec: &At<'_>, pod: Option<&str>, errors: &mut Vec<FieldError>) {
    let volumes = volume::check(&spec.member("volumes"), pod, errors);
    let whole = Whole { spec: spec.clone(), volumes };
    resources::pod_claims(&spec.member("resourceClaims"), errors);
    container::regular(&whole, errors);
    container::init(&whole, errors);
    container::ephemeral(&whole, errors);
    pod_resources::check(spec, errors);
    if spec.member("hostNetwork").is_true() {
        host_ports(spec, pod.is_some(), errors);
    }
    one_of(&spec.member("restartPolicy"), &RESTART_POLICIES, errors);
    pod_dns::policy(&spec.member("dnsPolicy"), errors);
    metadata::labels(&spec.member("nodeSelector"), errors);
    pod_security::pod(spec, errors);
    affinity::check(&spec.member("affinity"), errors);
    pod_dns::config(spec, errors);
    for gate in spec.member("readinessGates").items() {
        follows(&gate.member("conditionType"), names::qualified, errors);
    }
    scheduling_gates(&spec.member("schedulingGates"), errors);
    spread::check(&spec.member("topologySpreadConstraints"), errors);
    windows::host_processes(spec, errors);
    pod_security::host_users(&whole, errors);
    pod_dns::hostname(spec, errors);
    small_parts(spec, errors);
    windows::system(spec, errors);
    environment::file_volumes(spec, errors);
}

fn small_parts(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    named(&spec.member("serviceAccountName"), names::subdomain, errors);
    named(&spec.member("nodeName"), names::subdomain, errors);
    let deadline = spec.member("activeDeadlineSeconds");
    if deadline.int().is_some_and(|seconds| !(1..=DEADLINE_MAX).contains(&seconds)) {
        errors.push(deadline.invalid(format!("must be between 1 and {DEADLINE_MAX}, inclusive")));
    }
    named(&spec.member("hostname"), names::label, errors);
    named(&spec.member("subdomain"), names::label, errors);
    toleration::check(&spec.member("tolerations"), errors);
    pod_dns::aliases(&spec.member("hostAliases"), errors);
    named(&spec.member("priorityClassName"), names::subdomain, errors);
    let class = spec.member("runtimeClassName");
    if class.is_set() {
        follows(&class, names::subdomain, errors);
    }
    set_one_of(&spec.member("preemptionPolicy"), &["PreemptLowerPriority", "Never"], errors);
    resources::overhead(&spec.member("overhead"), errors);
}

/// On the network of the host, a port is the port of the host; a template may leave that to its Pods.
fn host_ports(spec: &At<'_>, is_pod: bool, errors: &mut Vec<FieldError>) {
    let ports = spec.member("containers").items().flat_map(|container| container.member("ports").items());
    for port in ports {
        let (host, own) = (port.member("hostPort"), port.member("containerPort"));
        let number = |at: &At<'_>| at.int().unwrap_or_default();
        if (is_pod || number(&host) != 0) && number(&host) != number(&own) {
            errors.push(host.wrong_number("must match `containerPort` when `hostNetwork` is true"));
        }
    }
}

fn scheduling_gates(gates: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for gate in gates.items() {
        // The item is named, not its member.
        let name = gate.member("name").renamed(gate.path.clone());
        follows(&name, names::qualified, errors);
        if seen.contains(&name.text()) {
            errors.push(name.again());
        }
        seen.push(name.text());
    }
}
