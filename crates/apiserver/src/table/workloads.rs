//! Controllers of Pods.

use serde_json::Value;

use super::{
    age,
    view::{NONE, UNSET, View, at, containers, integer, labels, or_none, scalar, selector, some_of, text},
};

fn with_template(view: &View<'_>, mut cells: Vec<Value>, template: &str, selector: String) -> Vec<Value> {
    cells.extend(containers(view.list(&format!("{template}.spec.containers"))));
    cells.push(selector.into());
    cells
}

/// The cells of a Deployment.
pub(super) fn deployment(view: &View<'_>) -> Vec<Value> {
    let cells = vec![
        view.name().into(),
        format!("{}/{}", view.integer("status.readyReplicas"), view.integer("spec.replicas")).into(),
        view.integer("status.updatedReplicas").into(),
        view.integer("status.availableReplicas").into(),
        view.age().into(),
    ];
    with_template(view, cells, "spec.template", selector(view.at("spec.selector")))
}

/// The cells of a ReplicaSet.
pub(super) fn replica_set(view: &View<'_>) -> Vec<Value> {
    with_template(view, replicas(view), "spec.template", or_none(selector(view.at("spec.selector"))))
}

/// The cells of a ReplicationController.
pub(super) fn replication_controller(view: &View<'_>) -> Vec<Value> {
    with_template(view, replicas(view), "spec.template", labels(view.at("spec.selector")))
}

fn replicas(view: &View<'_>) -> Vec<Value> {
    vec![
        view.name().into(),
        view.integer("spec.replicas").into(),
        view.integer("status.replicas").into(),
        view.integer("status.readyReplicas").into(),
        view.age().into(),
    ]
}

/// The cells of a StatefulSet.
pub(super) fn stateful_set(view: &View<'_>) -> Vec<Value> {
    let ready = format!("{}/{}", view.integer("status.readyReplicas"), view.integer("spec.replicas"));
    let mut cells = vec![view.name().into(), ready.into(), view.age().into()];
    cells.extend(containers(view.list("spec.template.spec.containers")));
    cells
}

/// The cells of a DaemonSet.
pub(super) fn daemon_set(view: &View<'_>) -> Vec<Value> {
    let cells = vec![
        view.name().into(),
        view.integer("status.desiredNumberScheduled").into(),
        view.integer("status.currentNumberScheduled").into(),
        view.integer("status.numberReady").into(),
        view.integer("status.updatedNumberScheduled").into(),
        view.integer("status.numberAvailable").into(),
        labels(view.at("spec.template.spec.nodeSelector")).into(),
        view.age().into(),
    ];
    with_template(view, cells, "spec.template", or_none(selector(view.at("spec.selector"))))
}

/// The cells of a Job.
pub(super) fn job(view: &View<'_>) -> Vec<Value> {
    let succeeded = view.integer("status.succeeded");
    let parallelism = view.integer("spec.parallelism");
    let completions = match view.at("spec.completions").as_i64() {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let status = [("Complete", "Complete"), ("Failed", "Failed")]
        .into_iter()
        .find(|(kind, _)| view.is(kind))
        .map(|(_, text)| text);
    let status = status.unwrap_or_else(|| match () {
        () if view.deleting() => "Terminating",
        () if view.is("Suspended") => "Suspended",
        () if view.is("FailureTarget") => "FailureTarget",
        () if view.is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    });
    let cells =
        vec![view.name().into(), status.into(), completions.into(), job_duration(view).into(), view.age().into()];
    with_template(view, cells, "spec.template", or_none(selector(view.at("spec.selector"))))
}

fn job_duration(view: &View<'_>) -> String {
    let time = |path: &str| view.text(path).parse::<jiff::Timestamp>().ok();
    let Some(start) = time("status.startTime") else { return String::new() };
    let end = time("status.completionTime").unwrap_or(view.now);
    age::short(end.as_second() - start.as_second())
}

/// The cells of a CronJob.
pub(super) fn cron_job(view: &View<'_>) -> Vec<Value> {
    let last = view.text("status.lastScheduleTime");
    let suspend = view.at("spec.suspend").as_bool().map_or(UNSET, |suspend| if suspend { "True" } else { "False" });
    let cells = vec![
        view.name().into(),
        view.text("spec.schedule").into(),
        view.text_or("spec.timeZone", NONE).into(),
        suspend.into(),
        view.count("status.active").into(),
        if last.is_empty() { NONE.to_owned() } else { view.since("status.lastScheduleTime") }.into(),
        view.age().into(),
    ];
    with_template(
        view,
        cells,
        "spec.jobTemplate.spec.template",
        or_none(selector(view.at("spec.jobTemplate.spec.selector"))),
    )
}

/// The cells of a PodDisruptionBudget.
pub(super) fn disruption_budget(view: &View<'_>) -> Vec<Value> {
    let bound =
        |path: &str| Some(scalar(view.at(path))).filter(|text| !text.is_empty()).unwrap_or_else(|| "N/A".to_owned());
    vec![
        view.name().into(),
        bound("spec.minAvailable").into(),
        bound("spec.maxUnavailable").into(),
        view.integer("status.disruptionsAllowed").into(),
        view.age().into(),
    ]
}

/// The cells of a HorizontalPodAutoscaler.
pub(super) fn autoscaler(view: &View<'_>) -> Vec<Value> {
    let reference = format!("{}/{}", view.text("spec.scaleTargetRef.kind"), view.text("spec.scaleTargetRef.name"));
    let least = view.at("spec.minReplicas").as_i64().map_or_else(|| UNSET.to_owned(), |least| least.to_string());
    vec![
        view.name().into(),
        reference.into(),
        metrics(view).into(),
        least.into(),
        view.integer("spec.maxReplicas").into(),
        view.integer("status.currentReplicas").into(),
        view.age().into(),
    ]
}

fn metrics(view: &View<'_>) -> String {
    if let Some(target) = view.at("spec.targetCPUUtilizationPercentage").as_i64() {
        let current = view.at("status.currentCPUUtilizationPercentage").as_i64();
        return format!("cpu: {}/{target}%", current.map_or_else(|| age::UNKNOWN.to_owned(), |now| format!("{now}%")));
    }
    let statuses = view.list("status.currentMetrics");
    let texts: Vec<String> = view
        .list("spec.metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    let shown = some_of(&texts, 2).replace(',', ", ");
    or_none(shown)
}

fn target(metric: &Value, status: &Value) -> String {
    let kind = text(metric, "type");
    let member = kind
        .chars()
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(kind.chars().skip(1)).collect());
    let (wanted, current) = (at(at(metric, &member), "target"), at(at(status, &member), "current"));
    let name = text(at(metric, &member), "name");
    let named = |text: String| if kind.ends_with("Resource") { format!("{name}: {text}") } else { text };
    let now = |member: &str| {
        Some(scalar(at(current, member))).filter(|text| !text.is_empty()).unwrap_or_else(|| age::UNKNOWN.into())
    };
    let average = scalar(at(wanted, "averageValue"));
    if !average.is_empty() {
        let suffix = if matches!(kind, "External" | "Object") { " (avg)" } else { "" };
        return named(format!("{}/{average}{suffix}", now("averageValue")));
    }
    if !at(wanted, "averageUtilization").is_null() {
        let percent = at(current, "averageUtilization").as_i64();
        let current = percent.map_or_else(|| age::UNKNOWN.to_owned(), |now| format!("{now}%"));
        return named(format!("{current}/{}%", integer(wanted, "averageUtilization")));
    }
    named(format!("{}/{}", now("value"), scalar(at(wanted, "value"))))
}

/// The cells of a ControllerRevision.
pub(super) fn controller_revision(view: &View<'_>) -> Vec<Value> {
    let owner =
        view.list("metadata.ownerReferences").iter().find(|owner| at(owner, "controller").as_bool() == Some(true));
    let controller = owner.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let group = text(owner, "apiVersion").split_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{}{dot}{group}/{}", text(owner, "kind").to_lowercase(), text(owner, "name"))
        },
    );
    vec![view.name().into(), controller.into(), view.integer("revision").into(), view.age().into()]
}
