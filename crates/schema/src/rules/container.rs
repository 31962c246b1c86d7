//! The containers of a Pod: those that run, those before them, and those that come later.

use std::collections::HashSet;

use super::cursor::{At, named, one_of, port, required, required_name};
use super::pod::Whole;
use super::{environment, mount, pod_resize, pod_security, probe, resources, restart};
use crate::{FieldError, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
/// What only containers have that run on and on.
const ENDURING: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];
/// What containers may not have that come later.
const NOT_LATER: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the containers that a Pod is about.
pub(super) fn regular(whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    let list = whole.spec.member("containers");
    if list.is_absent() {
        return errors.push(list.missing(""));
    }
    let mut seen = HashSet::new();
    for container in list.items() {
        sound(&container, whole, errors);
        let name = container.member("name");
        if !seen.insert(name.text()) {
            errors.push(name.again());
        }
        probe::check(&container, &whole.spec, errors);
        restart::rules(&container, errors);
    }
    host_ports(list.items().flat_map(|container| container.member("ports").items()), errors);
}

/// Checks the containers that run before the others, or beside them from the start.
pub(super) fn init(whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    let list = whole.spec.member("initContainers");
    let mut seen: HashSet<&str> = names_in(whole, "containers").collect();
    for container in list.items() {
        sound(&container, whole, errors);
        restart::rules(&container, errors);
        let name = container.member("name");
        if !name.is_absent() && !seen.insert(name.text()) {
            errors.push(name.again());
        }
        // They run one by one, and errors always name the first.
        host_ports(container.member("ports").renamed(format!("{}[0].ports", list.path)).items(), errors);
        if container.member("restartPolicy").text() == "Always" {
            probe::check(&container, &whole.spec, errors);
            continue;
        }
        let enduring = ENDURING.iter().map(|name| container.member(name)).filter(At::is_set);
        let detail = "may not be set for init containers without restartPolicy=Always";
        errors.extend(enduring.map(|member| member.forbidden(detail)));
    }
}

/// Checks the containers that were added to a Pod that runs.
pub(super) fn ephemeral(whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    let others: HashSet<&str> = names_in(whole, "containers").chain(names_in(whole, "initContainers")).collect();
    let mut seen = others.clone();
    for container in whole.spec.member("ephemeralContainers").items() {
        sound(&container, whole, errors);
        image_of_pod(&container, errors);
        let (name, target) = (container.member("name"), container.member("targetContainerName"));
        if !seen.insert(name.text()) {
            errors.push(name.again());
        }
        if !target.is_absent() && !others.contains(target.text()) {
            errors.push(FieldError::not_found(target.path.clone(), target.text()));
        }
        let detail = "cannot be set for an Ephemeral Container";
        let members = NOT_LATER.iter().map(|name| container.member(name));
        // Resources are there even where nobody asked for any.
        let is_written =
            |member: &At<'_>| if member.path.ends_with("resources") { !member.is_absent() } else { member.is_set() };
        errors.extend(members.filter(is_written).map(|member| member.forbidden(detail)));
        for mount in container.member("volumeMounts").items() {
            let parts = ["subPath", "subPathExpr"].into_iter().map(|name| mount.member(name));
            errors.extend(parts.filter(|part| !part.is_absent()).map(|part| part.forbidden(detail)));
        }
    }
}

/// A Pod, other than a template, has images without space around them.
pub(super) fn image_of_pod(container: &At<'_>, errors: &mut Vec<FieldError>) {
    let image = container.member("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

fn names_in<'a>(whole: &Whole<'a>, list: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    whole.spec.member(list).items().map(|container| container.member("name").text())
}

/// What holds for every container.
fn sound(container: &At<'_>, whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    required_name(&container.member("name"), names::label, errors);
    required(&container.member("image"), errors);
    one_of(&container.member("terminationMessagePolicy"), &MESSAGE_POLICIES, errors);
    ports(&container.member("ports"), errors);
    environment::check(container, errors);
    mount::mounts(container, whole, errors);
    mount::devices(container, whole, errors);
    pull_policy(&container.member("imagePullPolicy"), errors);
    resources::of_container(&container.member("resources"), &whole.spec.member("resourceClaims"), errors);
    let list = if container.path.contains("initContainers[") { "initContainers" } else { "containers" };
    pod_resize::policies(container, list, whole.spec.member("restartPolicy").text(), errors);
    pod_security::container(&container.member("securityContext"), whole, errors);
}

/// Checks when an image is pulled.
pub(super) fn pull_policy(policy: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(policy, &PULL_POLICIES, errors);
}

fn ports(ports: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for entry in ports.items() {
        let (name, number, host_port) = (entry.member("name"), entry.member("containerPort"), entry.member("hostPort"));
        let before = errors.len();
        named(&name, names::port_name, errors);
        if errors.len() == before && !name.is_absent() && !seen.insert(name.text()) {
            errors.push(name.again());
        }
        match number.int() {
            None | Some(0) => errors.push(number.missing("")),
            Some(_) => port(&number, errors),
        }
        if host_port.int() != Some(0) {
            port(&host_port, errors);
        }
        one_of(&entry.member("protocol"), &PROTOCOLS, errors);
    }
}

/// A port of the host is given once.
fn host_ports<'a>(ports: impl Iterator<Item = At<'a>>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for entry in ports {
        let host_port = entry.member("hostPort");
        let Some(number) = host_port.int().filter(|number| *number != 0) else { continue };
        let key = format!("{}/{}/{number}", entry.member("protocol").text(), entry.member("hostIP").text());
        if seen.contains(&key) {
            errors.push(FieldError::duplicate(host_port.path, key));
        } else {
            seen.insert(key);
        }
    }
}
