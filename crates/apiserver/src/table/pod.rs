//! Pods: the summary of their containers.

use serde_json::Value;

use super::{
    age,
    view::{NONE, View, at, integer, list, text},
};

/// The cells of a Pod.
pub(super) fn cells(view: &View<'_>) -> Vec<Value> {
    let summary = summary(view);
    let mut restarts = summary.restarts.to_string();
    if let (true, Some(time)) = (summary.restarts != 0, summary.last_restart) {
        restarts = format!("{restarts} ({} ago)", age::since(Some(time), view.now));
    }
    let ip = view.list("status.podIPs").first().map_or("", |ip| text(ip, "ip"));
    vec![
        view.name().into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        view.age().into(),
        if ip.is_empty() { view.text_or("status.podIP", NONE) } else { ip }.into(),
        view.text_or("spec.nodeName", NONE).into(),
        view.text_or("status.nominatedNodeName", NONE).into(),
        readiness_gates(view).into(),
    ]
}

struct Summary<'a> {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
    reason: String,
}

impl<'a> Summary<'a> {
    fn count_restarts(&mut self, container: &'a Value) {
        self.restarts += integer(container, "restartCount");
        let finished = Some(text(container, "lastState.terminated.finishedAt")).filter(|time| !time.is_empty());
        self.last_restart = self.last_restart.max(finished);
    }
}

fn summary<'a>(view: &View<'a>) -> Summary<'a> {
    let phase = view.text("status.phase");
    let sidecars: Vec<&str> = view
        .list("spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always")
        .map(|container| text(container, "name"))
        .collect();
    let gated = view.condition("PodScheduled").is_some_and(|condition| text(condition, "reason") == "SchedulingGated");
    let reason = if gated { "SchedulingGated" } else { view.text_or("status.reason", phase) };
    let total = view.list("spec.containers").len() + sidecars.len();
    let mut summary = Summary { ready: 0, total, restarts: 0, last_restart: None, reason: reason.to_owned() };
    let initializing = init_containers(view, &sidecars, &mut summary);
    if !initializing || view.is("Initialized") {
        summary.restarts = 0;
        summary.last_restart = None;
        let statuses = view.list("status.initContainerStatuses").iter();
        statuses
            .filter(|status| sidecars.contains(&text(status, "name")))
            .for_each(|status| summary.count_restarts(status));
        containers(view, &mut summary);
    }
    if view.deleting() && view.text("status.reason") == "NodeLost" {
        summary.reason = "Unknown".to_owned();
    } else if view.deleting() && !matches!(phase, "Succeeded" | "Failed") {
        summary.reason = "Terminating".to_owned();
    }
    summary
}

/// Looks at init containers; true while one of them holds the Pod up.
fn init_containers<'a>(view: &View<'a>, sidecars: &[&str], summary: &mut Summary<'a>) -> bool {
    for (index, container) in view.list("status.initContainerStatuses").iter().enumerate() {
        summary.count_restarts(container);
        let terminated = at(container, "state.terminated");
        let waiting = text(container, "state.waiting.reason");
        if !terminated.is_null() && integer(terminated, "exitCode") == 0 {
            continue;
        }
        if sidecars.contains(&text(container, "name")) && at(container, "started").as_bool() == Some(true) {
            summary.ready += usize::from(at(container, "ready").as_bool() == Some(true));
            continue;
        }
        summary.reason = if !terminated.is_null() {
            format!("Init:{}", termination(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", view.list("spec.initContainers").len())
        };
        return true;
    }
    false
}

fn containers<'a>(view: &View<'a>, summary: &mut Summary<'a>) {
    let mut running = false;
    let mut failed = None;
    for container in view.list("status.containerStatuses").iter().rev() {
        summary.count_restarts(container);
        let terminated = at(container, "state.terminated");
        let waiting = text(container, "state.waiting.reason");
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if !terminated.is_null() {
            summary.reason = termination(terminated);
            if integer(terminated, "exitCode") != 0 {
                failed = Some(summary.reason.clone());
            }
        } else if at(container, "ready").as_bool() == Some(true) && !at(container, "state.running").is_null() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        summary.reason = match (running, view.is("Ready"), failed) {
            (true, true, _) => "Running".to_owned(),
            (_, _, Some(failed)) => failed,
            (true, _, None) => "NotReady".to_owned(),
            (false, _, None) => "Completed".to_owned(),
        };
    }
}

fn termination(terminated: &Value) -> String {
    let (reason, signal) = (text(terminated, "reason"), integer(terminated, "signal"));
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", integer(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(view: &View<'_>) -> String {
    let gates = list(view.object, "spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| view.is(text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
