//! What an object may have but had better not: deprecated fields, and what is likely a mistake.

mod address;
mod container;
mod node;
mod pod;
mod port;
mod secret;
mod service;
mod storage;
#[cfg(test)]
mod tests;
mod volume;

use serde_json::Value;

use super::cursor::At;
use crate::{Kind, names, quantity::Quantity};

/// Names that are kept for what is configured in files.
const STATIC_SUFFIX: &str = ".static.k8s.io";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const TOKEN_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

/// What to tell whoever writes this object of a built-in kind, which is valid; `old` is the object before an update.
pub fn builtin_warnings(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Warnings::default();
    if !kind.is_builtin() {
        return warnings.0;
    }
    let (new, old) = (At::root(new), old.map(At::root));
    let old = old.as_ref();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") if old.is_none() => {
            host_name(&new, "the Pod's hostname", &mut warnings);
            pod::pod(&new, &mut warnings);
        }
        ("", "PodTemplate") => template(&new, old, "template", &mut warnings),
        ("", "ReplicationController") => replication_controller(&new, old, &mut warnings),
        ("apps", "Deployment" | "ReplicaSet") => named_template(&new, old, "spec.template", &mut warnings),
        ("apps", "DaemonSet") => daemon_set(&new, old, &mut warnings),
        ("apps", "StatefulSet") => stateful_set(&new, old, &mut warnings),
        ("batch", "Job") => job(&new, old, "spec", &mut warnings),
        ("batch", "CronJob") => cron_job(&new, old, &mut warnings),
        ("", "Service") => service::service(&new, &mut warnings),
        ("", "Endpoints") => service::endpoints(&new, &mut warnings),
        ("discovery.k8s.io", "EndpointSlice") => service::slice(&new, old, &mut warnings),
        ("networking.k8s.io", "NetworkPolicy") => service::network_policy(&new, &mut warnings),
        ("networking.k8s.io", "Ingress") if old.is_none() => ingress(&new, &mut warnings),
        ("", "Node") => node::node(&new, &mut warnings),
        ("node.k8s.io", "RuntimeClass") => node::runtime_class(&new, &mut warnings),
        ("", "PersistentVolume") => storage::volume(&new, &mut warnings),
        ("", "PersistentVolumeClaim") => storage::claim(&new, &mut warnings),
        ("storage.k8s.io", "StorageClass") => storage::class(&new, &mut warnings),
        ("storage.k8s.io", "CSIStorageCapacity") => node::selector(&new.member("nodeTopology"), &mut warnings),
        ("storage.k8s.io", "CSIDriver") => csi_driver(&new, old, &mut warnings),
        ("", "Secret") => secret::secret(&new, &mut warnings),
        ("", "ServiceAccount") => service_account(&new, old, &mut warnings),
        ("", "ResourceQuota") if old.is_none() => quota(&new, &mut warnings),
        ("resource.k8s.io", "ResourceSlice") => resource_slice(&new, &mut warnings),
        ("admissionregistration.k8s.io", _) => static_suffix(&new, &mut warnings),
        _ => {}
    }
    warnings.0
}

/// What to tell whoever writes only the status of an object.
pub fn builtin_status_warnings(kind: &Kind, new: &Value) -> Vec<String> {
    let mut warnings = Warnings::default();
    let status = At::root(new).member("status");
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            for list in ["podIPs", "hostIPs"] {
                status.member(list).items().for_each(|item| address::ip(&item.member("ip"), &mut warnings));
            }
        }
        ("", "Service") | ("networking.k8s.io", "Ingress") => {
            for point in status.at("loadBalancer.ingress").items() {
                // Warnings name the point, not its address.
                address::ip(&point.member("ip").renamed(point.path.clone()), &mut warnings);
            }
        }
        _ => {}
    }
    warnings.0
}

/// The sentences so far.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Warnings {
    fn add(&mut self, sentence: impl Into<String>) {
        self.0.push(sentence.into());
    }

    /// A sentence about the value at a place.
    fn about(&mut self, at: &At<'_>, sentence: impl std::fmt::Display) {
        self.0.push(format!("{}: {sentence}", at.path));
    }
}

/// Amounts of bytes are whole.
fn whole_bytes(amounts: &At<'_>, resources: &[&str], warnings: &mut Warnings) {
    for (_, amount) in amounts.entries().filter(|(name, _)| resources.contains(name)) {
        let nanos = Quantity::parse(amount.text()).map_or(0, Quantity::nanos);
        if nanos % 1_000_000_000 != 0 {
            let shown = crate::field::quote(amount.text());
            warnings.about(&amount, format!("fractional byte value {shown} is invalid, must be an integer"));
        }
    }
}

/// The name becomes that of Pods and of hosts, which are labels.
fn host_name(object: &At<'_>, used_in: &str, warnings: &mut Warnings) {
    let name = object.at("metadata.name");
    let wrong = names::label(name.text());
    if !wrong.is_empty() {
        let wrong = wrong.join(" ");
        warnings.about(&name, format!("this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{wrong}]"));
    }
}

fn generation_changed(new: &At<'_>, old: Option<&At<'_>>) -> bool {
    old.is_none_or(|old| old.at("metadata.generation").int() != new.at("metadata.generation").int())
}

/// The template at the dotted `path`, when it is new or something that is wanted has changed.
fn template(new: &At<'_>, old: Option<&At<'_>>, path: &str, warnings: &mut Warnings) {
    if generation_changed(new, old) {
        pod::template(&new.at(path), warnings);
    }
}

fn named_template(new: &At<'_>, old: Option<&At<'_>>, path: &str, warnings: &mut Warnings) {
    if old.is_none() {
        host_name(new, "Pod names and hostnames", warnings);
    }
    template(new, old, path, warnings);
}

/// On an update it is the template before it that Kubernetes warns of.
fn replication_controller(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    match old {
        None => named_template(new, None, "spec.template", warnings),
        Some(old) if generation_changed(new, Some(old)) => pod::template(&old.at("spec.template"), warnings),
        Some(_) => {}
    }
}

fn daemon_set(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    let template = new.at("spec.template");
    if old.is_none_or(|old| old.at("spec.template").value != template.value) {
        pod::template(&template, warnings);
    }
}

fn stateful_set(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    template(new, old, "spec.template", warnings);
    for claim in new.at("spec.volumeClaimTemplates").items() {
        // The path of a claim's spec is written in two ways, neither of them the field's.
        let path = if old.is_some() { format!("{}.Spec", claim.path) } else { claim.path.clone() };
        storage::claim_spec(&claim.member("spec").renamed(path), warnings);
    }
    let history = new.at("spec.revisionHistoryLimit");
    if history.int().is_some_and(|limit| limit < 0) {
        warnings.about(&history, "a negative value retains all historical revisions; a value >= 0 is recommended");
    }
}

/// The spec of a Job at the dotted `path`.
fn job(new: &At<'_>, old: Option<&At<'_>>, path: &str, warnings: &mut Warnings) {
    if old.is_none() {
        host_name(new, "Pod names and hostnames", warnings);
    }
    if !generation_changed(new, old) {
        return;
    }
    let spec = new.at(path);
    let count = |name: &str| spec.member(name).int().unwrap_or_default();
    let is_indexed = spec.member("completionMode").text() == "Indexed";
    if is_indexed && count("completions") > 100_000 && count("parallelism") > 10_000 {
        warnings.about(&spec, "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
    }
    pod::template(&spec.member("template"), warnings);
}

fn cron_job(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    job(new, old, "spec.jobTemplate.spec", warnings);
    if old.is_some() && new.at("spec.schedule").text().contains("TZ") {
        warnings.add("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
    }
}

fn ingress(new: &At<'_>, warnings: &mut Warnings) {
    let has_annotation = new.at("metadata.annotations").value.get(INGRESS_CLASS).is_some();
    if has_annotation && !new.at("spec.ingressClassName").is_set() {
        warnings.add(format!("annotation {INGRESS_CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

fn csi_driver(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    let requests = new.at("spec.tokenRequests");
    let is_unset = !new.at("spec.serviceAccountTokenInSecrets").is_set();
    let is_new = old.is_none_or(|old| old.at("spec.tokenRequests").value != requests.value);
    if is_unset && is_new && !requests.is_absent() {
        warnings.add(TOKEN_IN_SECRETS);
    }
}

fn service_account(new: &At<'_>, old: Option<&At<'_>>, warnings: &mut Warnings) {
    let has = |account: &At<'_>| account.at("metadata.annotations").value.get(MOUNTABLE_SECRETS).is_some();
    if has(new) && !old.is_some_and(has) {
        warnings.add(format!(
            "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        ));
    }
}

/// Requests that are allowed in sum are not above the limits that are.
fn quota(new: &At<'_>, warnings: &mut Warnings) {
    let hard = new.at("spec.hard");
    let amount = |name: &str| hard.value.get(name).and_then(Value::as_str);
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let requests = format!("requests.{resource}");
        let is_short = amount(&requests).is_none() && ["cpu", "memory"].contains(&resource);
        let (requests, limits) = (if is_short { resource.to_owned() } else { requests }, format!("limits.{resource}"));
        let (Some(request), Some(limit)) = (amount(&requests), amount(&limits)) else { continue };
        let nanos = |text: &str| Quantity::parse(text).map(Quantity::nanos);
        if nanos(request) > nanos(limit) {
            warnings.add(format!("ResourceQuota {requests} ({request}) should be less than {limits} ({limit})"));
        }
    }
}

fn resource_slice(new: &At<'_>, warnings: &mut Warnings) {
    let driver = new.at("spec.driver");
    if driver.text() != driver.text().to_lowercase() {
        let shown = crate::field::quote(driver.text());
        warnings.about(&driver, format!("driver names should be lowercase; {shown} contains uppercase characters"));
    }
}

fn static_suffix(new: &At<'_>, warnings: &mut Warnings) {
    let name = new.at("metadata.name");
    if name.text().ends_with(STATIC_SUFFIX) {
        warnings.about(&name, format!("names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via the API"));
    }
}
