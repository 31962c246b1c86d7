//! As whom containers run, and what they are kept from.

use super::cursor::{At, set_one_of};
use super::pod::Whole;
use super::{path, pod_sysctl, windows};
use crate::FieldError;

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const APP_ARMOR_BYTES_MAX: usize = 4095;
const ID_MAX: i64 = i32::MAX as i64;

/// Checks what a Pod says for all its containers.
pub(super) fn pod(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let context = spec.member("securityContext");
    if !context.is_set() {
        return;
    }
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&context.member(name), errors);
    }
    context.member("supplementalGroups").items().for_each(|group| id(&group, errors));
    let shared = spec.member("shareProcessNamespace");
    if shared.is_true() && spec.member("hostPID").is_true() {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        // Upstream keeps it in the security context.
        errors.push(shared.renamed(context.member("shareProcessNamespace").path).invalid(detail));
    }
    pod_sysctl::check(spec, errors);
    set_one_of(&context.member("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], errors);
    seccomp(&context.member("seccompProfile"), errors);
    windows::options(&context.member("windowsOptions"), errors);
    app_armor(&context.member("appArmorProfile"), errors);
    set_one_of(&context.member("supplementalGroupsPolicy"), &["Merge", "Strict"], errors);
    set_one_of(&context.member("seLinuxChangePolicy"), &["Recursive"], errors);
}

/// Checks what a container says for itself.
pub(super) fn container(context: &At<'_>, whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    if !context.is_set() {
        return;
    }
    id(&context.member("runAsUser"), errors);
    id(&context.member("runAsGroup"), errors);
    let mount = context.member("procMount");
    set_one_of(&mount, &["Default", "Unmasked"], errors);
    if mount.text() == "Unmasked" && whole.has_host_users() {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&context.member("seccompProfile"), errors);
    if context.member("allowPrivilegeEscalation").value == false {
        let refused =
            |what: &str| context.invalid(format!("cannot set `allowPrivilegeEscalation` to false and {what}"));
        if context.member("privileged").is_true() {
            errors.push(refused("`privileged` to true"));
        }
        let added = context.at("capabilities.add").items().filter(|name| name.text() == "CAP_SYS_ADMIN");
        errors.extend(added.map(|_| refused("`capabilities.Add` CAP_SYS_ADMIN")));
    }
    windows::options(&context.member("windowsOptions"), errors);
    app_armor(&context.member("appArmorProfile"), errors);
}

/// Users of its own go with no other namespace of the host.
pub(super) fn host_users(whole: &Whole<'_>, errors: &mut Vec<FieldError>) {
    if whole.has_host_users() {
        return;
    }
    let (spec, detail) = (&whole.spec, "when `hostUsers` is false");
    // Two of the paths are as upstream spells them.
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.member(name).is_true() {
            errors.push(spec.member(shown).forbidden(detail));
        }
    }
    let devices = windows::containers(spec).map(|container| container.member("volumeDevices"));
    errors.extend(devices.filter(|devices| !devices.is_absent()).map(|devices| devices.forbidden(detail)));
}

fn id(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.int().is_some_and(|id| !(0..=ID_MAX).contains(&id)) {
        errors.push(at.invalid(format!("must be between 0 and {ID_MAX}, inclusive")));
    }
}

fn seccomp(profile: &At<'_>, errors: &mut Vec<FieldError>) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.member("type"), profile.member("localhostProfile"));
    if kind.is_absent() {
        errors.push(kind.missing("type is required when seccompProfile is set"));
    } else {
        set_one_of(&kind, &PROFILES, errors);
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, false) => errors.push(file.missing("must be set when seccomp type is Localhost")),
        (true, true) => path::descending(&file, errors),
        (false, true) => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(file.path, profile.value.clone(), detail));
        }
        (false, false) => {}
    }
}

fn app_armor(profile: &At<'_>, errors: &mut Vec<FieldError>) {
    if !profile.is_set() {
        return;
    }
    let (kind, name) = (profile.member("type"), profile.member("localhostProfile"));
    let missing = || name.missing("must be set when AppArmor type is Localhost");
    match kind.text() {
        "" => errors.push(kind.missing("type is required when appArmorProfile is set")),
        "Localhost" if !name.is_set() => errors.push(missing()),
        "Localhost" => {
            if name.text().trim() != name.text() {
                errors.push(name.invalid("must not be padded with whitespace"));
            } else if name.is_absent() {
                errors.push(missing());
            }
            if name.text().len() > APP_ARMOR_BYTES_MAX {
                errors.push(FieldError::too_long(name.path, APP_ARMOR_BYTES_MAX as u64));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if name.is_set() {
                errors.push(name.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        _ => errors.push(kind.unsupported(&PROFILES)),
    }
}
