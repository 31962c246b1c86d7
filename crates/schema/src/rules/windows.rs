//! What only Pods of one operating system have.

use super::cursor::{At, follows};
use crate::{FieldError, names};

const CREDENTIAL_BYTES_MAX: usize = 64 * 1024;
const DOMAIN_BYTES_MAX: usize = 255;
const USER_BYTES_MAX: usize = 104;
/// What no part of the name of a user has.
const NOT_IN_USERS: &str = "\"/\\:;|=,+*?<>@[]";
/// What of the security context of a Pod is of Linux.
const LINUX_POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
/// What of the security context of a container is of Linux.
const LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// All the containers of a Pod.
pub(super) fn containers<'a>(spec: &At<'a>) -> impl Iterator<Item = At<'a>> + use<'a> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].map(|list| spec.member(list));
    lists.into_iter().flat_map(|list| list.items())
}

/// Checks the system that a Pod is for, and that it has nothing of another.
pub(super) fn system(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let system = spec.member("os");
    let name = system.member("name");
    match name.text() {
        _ if !system.is_set() => {}
        "" => errors.push(name.missing("")),
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        _ => errors.push(name.renamed(system.path.clone()).unsupported(&["linux", "windows"])),
    }
}

fn linux(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let contexts = std::iter::once(spec.clone()).chain(containers(spec));
    let options = contexts.map(|part| part.at("securityContext.windowsOptions")).filter(At::is_set);
    errors.extend(options.map(|options| options.forbidden("windows options cannot be set for a linux pod")));
}

fn windows(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let context = spec.member("securityContext");
    let mut found: Vec<At<'_>> = LINUX_POD.iter().map(|name| context.member(name)).collect();
    found.extend(["hostUsers", "shareProcessNamespace"].map(|name| spec.member(name)));
    found.extend(["hostPID", "hostIPC"].map(|name| spec.member(name)).into_iter().filter(At::is_true));
    for container in containers(spec) {
        found.extend(LINUX_CONTAINER.iter().map(|name| container.member("securityContext").member(name)));
    }
    let found = found.into_iter().filter(At::is_set);
    errors.extend(found.map(|at| at.forbidden("cannot be set for a windows pod")));
}

/// All containers are processes of the host or none, and then the Pod is on the network of the host.
pub(super) fn host_processes(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let whole = spec.at("securityContext.windowsOptions.hostProcess").value.as_bool();
    let (mut all, mut of_host) = (0, 0);
    for container in containers(spec) {
        let own = container.at("securityContext.windowsOptions.hostProcess");
        all += 1;
        of_host += usize::from(own.value.as_bool().or(whole) == Some(true));
        if let (Some(whole), Some(one)) = (whole, own.value.as_bool())
            && whole != one
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {whole}");
            errors.push(own.invalid(detail));
        }
    }
    if of_host == 0 {
        return;
    }
    if of_host != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(spec.path.clone(), "", detail));
    }
    let network = spec.member("hostNetwork");
    if !network.is_true() {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(network.path, false, detail));
    }
}

/// Checks the options that only Windows has.
pub(super) fn options(options: &At<'_>, errors: &mut Vec<FieldError>) {
    let (spec_name, spec) = (options.member("gmsaCredentialSpecName"), options.member("gmsaCredentialSpec"));
    if spec_name.is_set() {
        follows(&spec_name, names::subdomain, errors);
    }
    match spec.text().len() {
        _ if !spec.is_set() => {}
        0 => errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string")),
        CREDENTIAL_BYTES_MAX.. => errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB")),
        _ => {}
    }
    let user = options.member("runAsUserName");
    if user.is_set() {
        errors.extend(wrong_user(user.text()).into_iter().map(|detail| user.invalid(detail)));
    }
}

fn wrong_user(text: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if text.is_empty() => return vec!["runAsUserName cannot be an empty string"],
        _ if text.contains(|letter: char| letter.is_ascii_control()) => {
            return vec!["runAsUserName cannot contain control characters"];
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut wrong = Vec::new();
    if domain.is_some_and(|domain| domain.len() > DOMAIN_BYTES_MAX) {
        wrong.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_domain(domain)) {
        wrong.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    match user.len() {
        0 => wrong.push("runAsUserName's User cannot be empty"),
        1..=USER_BYTES_MAX => {}
        _ => wrong.push("runAsUserName's User length must not be longer than 104 characters"),
    }
    if !user.is_empty() && user.chars().all(|letter| matches!(letter, '.' | ' ')) {
        wrong.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|letter| NOT_IN_USERS.contains(letter)) {
        wrong.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    wrong
}

fn is_domain(domain: &str) -> bool {
    let is_short = (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|letter| "\\/:*?\"<>|".contains(letter));
    is_short || domain.split('.').all(|part| names::is_label(&part.to_ascii_lowercase()))
}
