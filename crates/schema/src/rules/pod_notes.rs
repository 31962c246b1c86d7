//! Annotations that mean something for a Pod.

use serde_json::{Value, json};

use super::cursor::At;
use super::path;
use super::windows::containers;
use crate::FieldError;
use crate::field::key;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// What the annotation with the AppArmor profile of a container begins with; the rest is its name.
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";

/// Checks the annotations of a Pod with this spec, or of a template of it.
pub(super) fn check(notes: &At<'_>, spec: &At<'_>, errors: &mut Vec<FieldError>) {
    for (name, note) in notes.entries() {
        let text = note.text();
        if name == MIRROR && spec.member("nodeName").is_absent() {
            errors.push(note.invalid("must set spec.nodeName if mirror pod annotation is set"));
        } else if name == DELETION_COST && !is_cost(text) {
            errors.push(note.invalid("must be a 32bit integer"));
        } else if name == SECCOMP_POD || name.starts_with(SECCOMP_CONTAINER) {
            // Errors name the key as if it were a member.
            seccomp(&note.renamed(format!("{}.{name}", notes.path)), errors);
        } else if let Some(container) = name.strip_prefix(APP_ARMOR) {
            if !containers(spec).any(|other| other.member("name").text() == container) {
                errors.push(FieldError::invalid(note.path.clone(), container, "container not found"));
            }
            if !["", "runtime/default", "unconfined"].contains(&text) && !text.starts_with(LOCALHOST) {
                errors.push(note.invalid(format!("invalid AppArmor profile name: {}", crate::field::quote(text))));
            }
        }
    }
}

/// The field that says the same as an annotation with an AppArmor profile.
pub fn app_armor_profile(note: &str) -> Option<Value> {
    match (note, note.strip_prefix(LOCALHOST)) {
        ("runtime/default", _) => Some(json!({"type": "RuntimeDefault"})),
        ("unconfined", _) => Some(json!({"type": "Unconfined"})),
        (_, Some(profile)) if !profile.is_empty() => Some(json!({"type": "Localhost", "localhostProfile": profile})),
        _ => None,
    }
}

/// A number without signs and zeros ahead that say nothing.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = text == "0" || text.starts_with('-') || digits.starts_with(|first| ('1'..='9').contains(&first));
    is_plain && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &At<'_>, errors: &mut Vec<FieldError>) {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix(LOCALHOST) {
            Some(file) => {
                let file = Value::from(file);
                path::descending(&At { path: profile.path.clone(), value: &file }, errors);
            }
            None => errors.push(profile.wrong_text("must be a valid seccomp profile")),
        },
    }
}

/// Where an annotation and a field say the same, they agree.
pub(super) fn match_fields(notes: &At<'_>, spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let seccomp = spec.at("securityContext.seccompProfile");
    agree(&seccomp, notes.value.get(SECCOMP_POD).and_then(|note| note.as_str()), "seccomp", errors);
    for container in containers(spec) {
        let note = |prefix: &str| {
            let name = format!("{prefix}{}", container.member("name").text());
            notes.value.get(&name).and_then(|note| note.as_str())
        };
        agree(&container.at("securityContext.seccompProfile"), note(SECCOMP_CONTAINER), "seccomp", errors);
        if spec.at("os.name").text() != "windows" {
            // A profile of the whole Pod gives way to an annotation.
            let profile = container.at("securityContext.appArmorProfile");
            agree(&profile, note(APP_ARMOR), "apparmor", errors);
        }
    }
}

fn agree(profile: &At<'_>, note: Option<&str>, what: &str, errors: &mut Vec<FieldError>) {
    let Some(note) = note.filter(|_| profile.is_set()) else { return };
    let (kind, file) = (profile.member("type"), profile.member("localhostProfile"));
    let is_same_kind = match kind.text() {
        "Unconfined" => note == "unconfined",
        "RuntimeDefault" => note == "runtime/default" || (what == "seccomp" && note == "docker/default"),
        "Localhost" => note.starts_with(LOCALHOST),
        _ => true,
    };
    if !is_same_kind {
        errors.push(kind.forbidden(format!("{what} type in annotation and field must match")));
    } else if kind.text() == "Localhost" && note.strip_prefix(LOCALHOST) != file.value.as_str() {
        errors.push(file.forbidden(format!("{what} profile in annotation and field must match")));
    }
}

/// Checks what may not change in the annotations of a Pod that is there.
pub(super) fn kept(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let what = |name: &str| match name {
        MIRROR => Some("mirror pod annotation"),
        _ if name.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    for (name, note) in old.entries() {
        let is_kept = new.value.get(name) == Some(note.value);
        if let Some(what) = what(name).filter(|_| !is_kept) {
            errors.push(FieldError::forbidden(key(&new.path, name), format!("may not remove or update {what}")));
        }
    }
    for (name, note) in new.entries().filter(|(name, _)| old.value.get(*name).is_none()) {
        errors.extend(what(name).map(|what| note.forbidden(format!("may not add {what}"))));
    }
}
