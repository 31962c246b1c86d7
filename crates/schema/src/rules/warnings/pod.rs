//! Pods and templates of Pods.

use std::collections::HashSet;

use super::super::{cursor::At, pod_notes, windows};
use super::{Warnings, address, container, node, port, volume, whole_bytes};
use crate::field::{key, quote};

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";
const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
];
pub(super) const SECCOMP: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;

/// A Pod by itself.
pub(super) fn pod(pod: &At<'_>, warnings: &mut Warnings) {
    check(pod, false, warnings);
}

/// A template, with the path that it has in its workload.
pub(super) fn template(template: &At<'_>, warnings: &mut Warnings) {
    if template.is_set() {
        check(template, true, warnings);
    }
}

fn check(pod: &At<'_>, is_template: bool, warnings: &mut Warnings) {
    let (spec, notes) = (pod.member("spec"), pod.at("metadata.annotations"));
    node::labels(&spec.member("nodeSelector"), warnings);
    node_affinity(&spec.at("affinity.nodeAffinity"), warnings);
    spread(&spec.member("topologySpreadConstraints"), warnings);
    for (name, sentence) in DEPRECATED_ANNOTATIONS.iter().filter(|(name, _)| notes.value.get(*name).is_some()) {
        warnings.add(format!("{}: {sentence}", key(&notes.path, name)));
    }
    spec.member("volumes").items().for_each(|volume| volume::source(&volume, warnings));
    spec.member("volumes").items().for_each(|volume| volume::overlaps(&volume, warnings));
    doubles(&spec.member("hostAliases"), "ip", warnings);
    doubles(&spec.member("imagePullSecrets"), "name", warnings);
    for secret in spec.member("imagePullSecrets").items().map(|secret| secret.member("name")) {
        if secret.is_absent() {
            warnings.about(&secret, r#"invalid empty name """#);
        }
    }
    whole_bytes(&spec.member("overhead"), &container::BYTES, warnings);
    let seccomp = pod_notes::SECCOMP_POD;
    if !spec.at("securityContext.seccompProfile").is_set() && notes.value.get(seccomp).is_some() {
        warnings.add(format!("{}: {SECCOMP}", key(&notes.path, seccomp)));
    }
    let profile = spec.at("securityContext.appArmorProfile");
    for one in windows::containers(&spec) {
        container::annotations(&one, &notes, is_template.then_some(&profile), warnings);
        container::container(&one, warnings);
    }
    port::ports(&spec, warnings);
    let grace = spec.member("terminationGracePeriodSeconds");
    if grace.int().is_some_and(|seconds| seconds < 0) {
        warnings.about(&grace, "must be >= 0; negative values are invalid and will be treated as 1");
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(&spec.member("affinity").member(name), warnings);
    }
    spec.at("dnsConfig.nameservers").items().for_each(|server| address::ip(&server, warnings));
    spec.member("hostAliases").items().for_each(|alias| address::ip(&alias.member("ip"), warnings));
}

fn node_affinity(affinity: &At<'_>, warnings: &mut Warnings) {
    let required = affinity.at("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    required.items().for_each(|term| node::term(&term, warnings));
    for preferred in affinity.member("preferredDuringSchedulingIgnoredDuringExecution").items() {
        let term = preferred.member("preference");
        node::preferred_term(&term, warnings);
    }
}

fn spread(constraints: &At<'_>, warnings: &mut Warnings) {
    for constraint in constraints.items() {
        node::named(&constraint.member("topologyKey"), warnings);
        let selector = constraint.member("labelSelector");
        if !selector.is_set() {
            warnings.about(&selector, NO_SELECTOR);
        }
    }
}

fn pod_affinity(affinity: &At<'_>, warnings: &mut Warnings) {
    let required = affinity.member("requiredDuringSchedulingIgnoredDuringExecution");
    let preferred = affinity.member("preferredDuringSchedulingIgnoredDuringExecution");
    let required = required.items().map(|term| term.member("labelSelector"));
    let preferred = preferred.items().map(|term| term.at("podAffinityTerm.labelSelector"));
    for selector in required.chain(preferred).filter(|selector| !selector.is_set()) {
        warnings.about(&selector, NO_SELECTOR);
    }
}

/// Items that have the same member as one before them.
fn doubles(list: &At<'_>, name: &str, warnings: &mut Warnings) {
    let mut seen = HashSet::new();
    for member in list.items().map(|item| item.member(name)) {
        if !seen.insert(member.text()) {
            warnings.about(&member, format!("duplicate {name} {}", quote(member.text())));
        }
    }
}
