//! Nodes, namespaces, events, leases, quotas.

use serde_json::Value;

use super::{
    age,
    view::{NONE, View, at, integer, scalar, text},
};

/// The cells of a Node.
pub(super) fn node(view: &View<'_>) -> Vec<Value> {
    let mut status = match view.condition("Ready") {
        Some(condition) if text(condition, "status") == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if view.truth("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let addresses = view.list("status.addresses").iter();
        addresses.clone().find(|address| text(address, "type") == kind).map_or(NONE, |address| text(address, "address"))
    };
    let info = |member: &str| view.text_or(&format!("status.nodeInfo.{member}"), age::UNKNOWN);
    let architecture = view.text("status.nodeInfo.architecture");
    let kernel = info("kernelVersion");
    let kernel = if architecture.is_empty() { kernel.to_owned() } else { format!("{kernel} ({architecture})") };
    vec![
        view.name().into(),
        status.into(),
        roles(view).into(),
        view.age().into(),
        view.text("status.nodeInfo.kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage").into(),
        kernel.into(),
        info("containerRuntimeVersion").into(),
    ]
}

fn roles(view: &View<'_>) -> String {
    let labels = view.at("metadata.labels").as_object().into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match (key.strip_prefix("node-role.kubernetes.io/"), key.as_str()) {
            (Some(role), _) => Some(role),
            (None, "kubernetes.io/role") => value.as_str(),
            _ => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

/// The cells of a ComponentStatus.
pub(super) fn component_status(view: &View<'_>) -> Vec<Value> {
    let found = view.list("conditions").iter().find(|condition| text(condition, "type") == "Healthy");
    let status = match found.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let of = |member: &str| found.map_or("", |condition| text(condition, member));
    vec![view.name().into(), status.into(), of("message").into(), of("error").into()]
}

/// The cells of a Namespace.
pub(super) fn namespace(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.text("status.phase").into(), view.age().into()]
}

/// The cells of an Event, of either group.
pub(super) fn event(view: &View<'_>) -> Vec<Value> {
    let either = |first: &'static str, second: &'static str| if view.at(first).is_null() { second } else { first };
    let about = view.at(either("involvedObject", "regarding"));
    let source = view.at(either("source", "deprecatedSource"));
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let first_seen = view.since(if view.text(first).is_empty() { "eventTime" } else { first });
    let mut last_seen = if view.text(last).is_empty() { first_seen.clone() } else { view.since(last) };
    let mut count = view.integer(either("count", "deprecatedCount")).max(1);
    if !view.at("series").is_null() {
        last_seen = view.since("series.lastObservedTime");
        count = view.integer("series.count");
    }
    let kind = text(about, "kind").to_lowercase();
    let name = text(about, "name");
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let or = |text: &str, path: &str| if text.is_empty() { view.text(path).to_owned() } else { text.to_owned() };
    let component = or(text(source, "component"), "reportingController");
    let component = if component.is_empty() { view.text("reportingComponent").to_owned() } else { component };
    let host = or(text(source, "host"), "reportingInstance");
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    vec![
        last_seen.into(),
        view.text("type").into(),
        view.text("reason").into(),
        target.into(),
        text(about, "fieldPath").into(),
        source.into(),
        view.text(either("message", "note")).trim().into(),
        first_seen.into(),
        count.into(),
        view.name().into(),
    ]
}

/// The cells of a Lease.
pub(super) fn lease(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.text("spec.holderIdentity").into(), view.age().into()]
}

/// The cells of a ResourceQuota.
pub(super) fn resource_quota(view: &View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in view.at("status.hard").as_object().into_iter().flatten() {
        let used = view.at("status.used").get(resource).map_or_else(|| "0".to_owned(), scalar);
        let text = format!("{resource}: {used}/{}", scalar(hard));
        if resource.starts_with("limits.") { &mut limits } else { &mut requests }.push(text);
    }
    requests.sort();
    limits.sort();
    vec![view.name().into(), requests.join(", ").into(), limits.join(", ").into(), view.age().into()]
}

/// The cells of a PriorityClass.
pub(super) fn priority_class(view: &View<'_>) -> Vec<Value> {
    vec![
        view.name().into(),
        view.integer("value").into(),
        view.truth("globalDefault").into(),
        view.age().into(),
        view.text("preemptionPolicy").into(),
    ]
}

/// The cells of a ConfigMap.
pub(super) fn config_map(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), (view.count("data") + view.count("binaryData")).into(), view.age().into()]
}

/// The cells of a Secret: how many entries, never which.
pub(super) fn secret(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.text("type").into(), view.count("data").into(), view.age().into()]
}

/// The cells of a kind that shows its name and age.
pub(super) fn name_and_age(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.age().into()]
}

/// The cells of a FlowSchema.
pub(super) fn flow_schema(view: &View<'_>) -> Vec<Value> {
    let dangling = view.condition("Dangling").map_or("?", |condition| text(condition, "status"));
    vec![
        view.name().into(),
        view.text("spec.priorityLevelConfiguration.name").into(),
        view.integer("spec.matchingPrecedence").into(),
        view.text_or("spec.distinguisherMethod.type", NONE).into(),
        view.age().into(),
        dangling.into(),
    ]
}

/// The cells of a PriorityLevelConfiguration.
pub(super) fn priority_level(view: &View<'_>) -> Vec<Value> {
    let number = |path: &str| view.at(path).as_i64().map_or_else(|| Value::from(NONE), Value::from);
    vec![
        view.name().into(),
        view.text("spec.type").into(),
        number("spec.limited.nominalConcurrencyShares"),
        number("spec.limited.limitResponse.queuing.queues"),
        number("spec.limited.limitResponse.queuing.handSize"),
        number("spec.limited.limitResponse.queuing.queueLengthLimit"),
        view.age().into(),
    ]
}

/// The cells of a RuntimeClass.
pub(super) fn runtime_class(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.text("handler").into(), view.age().into()]
}

/// The cells of a Scale.
pub(super) fn scale(view: &View<'_>) -> Vec<Value> {
    let replicas = |part: &str| integer(at(view.object, part), "replicas");
    vec![view.name().into(), replicas("spec").into(), replicas("status").into(), view.age().into()]
}
