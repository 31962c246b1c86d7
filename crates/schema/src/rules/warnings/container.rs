//! Containers of Pods.

use std::collections::HashSet;

use super::super::{cursor::At, pod_notes};
use super::{Warnings, pod::SECCOMP, whole_bytes};
use crate::field::{key, quote};

/// Resources that are counted in bytes.
pub(super) const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// Annotations that say what a field should. `profile` is the AppArmor profile of the Pods of a template; a Pod by itself
/// gets the field from the annotation.
pub(super) fn annotations(container: &At<'_>, notes: &At<'_>, profile: Option<&At<'_>>, warnings: &mut Warnings) {
    let (name, context) = (container.member("name"), container.member("securityContext"));
    let seccomp = format!("{}{}", pod_notes::SECCOMP_CONTAINER, name.text());
    if !context.member("seccompProfile").is_set() && notes.value.get(&seccomp).is_some() {
        warnings.add(format!("{}: {SECCOMP}", key(&notes.path, &seccomp)));
    }
    let Some(profile) = profile.filter(|_| !context.member("appArmorProfile").is_set()) else { return };
    let app_armor = format!("{}{}", pod_notes::APP_ARMOR, name.text());
    let Some(note) = notes.value.get(&app_armor) else { return };
    let same = note.as_str().and_then(pod_notes::app_armor_profile);
    if !profile.is_set() || Some(profile.value) != same.as_ref() {
        let sentence = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
        warnings.add(format!("{}: {sentence}", key(&notes.path, &app_armor)));
    }
}

pub(super) fn container(container: &At<'_>, warnings: &mut Warnings) {
    for resource in BYTES {
        for list in ["limits", "requests"] {
            whole_bytes(&container.member("resources").member(list), &[resource], warnings);
        }
    }
    let mut seen = HashSet::new();
    for variable in container.member("env").items() {
        let (name, value) = (variable.member("name"), variable.member("value"));
        let reference = format!("$({})", name.text());
        let builds_on = value.text().contains(&reference) && value.text() != reference;
        if !seen.insert(name.text()) && (!builds_on || variable.member("valueFrom").is_set()) {
            let hidden = quote(name.text());
            warnings.about(
                &variable,
                format!("hides previous definition of {hidden}, which may be dropped when using apply"),
            );
        }
    }
}
