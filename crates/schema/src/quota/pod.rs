//! Pods as quotas count them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Amounts, amounts};
use crate::pod_resources;
use crate::quantity::Quantity;

const COUNT: &str = "count/pods";
const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";
/// What is counted under its own name and, with a prefix, under another.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What every container must say something about, if a quota limits it.
const EXPLICIT: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

pub(super) fn has(name: &str) -> bool {
    if ["pods", COUNT].contains(&name) || COMPUTE.contains(&name) || name.starts_with(HUGE_PAGES) {
        return true;
    }
    let compute = |prefix| name.strip_prefix(prefix).is_some_and(|rest: &str| COMPUTE.contains(&rest));
    let requested = name.strip_prefix(REQUESTS).is_some_and(|rest| rest.starts_with(HUGE_PAGES) || is_extended(rest));
    compute(REQUESTS) || compute(LIMITS) || requested
}

/// Whether a resource is one that the cluster itself does not know.
fn is_extended(resource: &str) -> bool {
    let device = resource.starts_with("deviceclass.resource.kubernetes.io/");
    resource.contains('/') && (device || !resource.contains("kubernetes.io/"))
}

/// A Pod that has ended, or should have by `now`, uses nothing but its place in the store.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Amounts {
    let mut used = Amounts::from([(COUNT.to_owned(), Quantity::units(1))]);
    if !has_ended(pod, now) {
        used.insert("pods".to_owned(), Quantity::units(1));
        let (requests, limits) = (pod_resources::total(pod, "requests"), pod_resources::total(pod, "limits"));
        used.extend(named(&requests, &limits));
    }
    used
}

fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return true;
    }
    let until = pod["metadata"]["deletionTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    let over = until.zip(grace).map(|(until, grace)| until.saturating_add(SignedDuration::from_secs(grace)));
    over.and_then(Result::ok).is_some_and(|over| now > over)
}

/// Amounts of requests and limits under the names that quotas know.
fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut named = Amounts::new();
    for (name, amount) in requests {
        let huge = name.starts_with(HUGE_PAGES);
        let compute = COMPUTE.contains(&name.as_str());
        if compute || huge {
            named.insert(name.clone(), *amount);
        }
        if compute || huge || is_extended(name) {
            named.insert(format!("{REQUESTS}{name}"), *amount);
        }
    }
    let compute = limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str()));
    named.extend(compute.map(|(name, amount)| (format!("{LIMITS}{name}"), *amount)));
    named
}

pub(super) fn check_complete<'n>(limited: impl Iterator<Item = &'n str>, pod: &Value) -> Result<(), String> {
    if ["requests", "limits"].iter().any(|field| !amounts(&pod["spec"]["resources"][field]).is_empty()) {
        return Ok(());
    }
    let required: BTreeSet<&str> = limited.filter(|name| EXPLICIT.contains(name)).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            let said = named(&amounts(&resources["requests"]), &amounts(&resources["limits"]));
            for name in required.iter().filter(|name| !said.contains_key(**name)) {
                missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let sentence = |(name, containers): (&&str, &BTreeSet<&str>)| {
        format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
    };
    Err(format!("must specify {}", missing.iter().map(sentence).collect::<Vec<_>>().join("; ")))
}
