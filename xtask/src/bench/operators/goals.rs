//! What Windlass is to reach beside the others, and what it reached.

use serde_json::{Value, json};

use super::phases::Measured;
use super::servers::by_server;

/// The writes that the work needs: two children and a status.
pub(super) const WRITES_FLOOR: f64 = 3.0;
/// A hundredth over the floor.
const WRITES_MOST: f64 = 3.02;
const OWN: &str = "windlass";
const GO: &str = "controller-runtime";
const KUBE: &str = "kube-pruned";

/// A goal, what there is of it, and whether that is enough.
pub(super) struct Goal {
    pub(super) text: &'static str,
    pub(super) is: f64,
    pub(super) most: f64,
}

impl Goal {
    pub(super) fn met(&self) -> bool {
        self.is <= self.most
    }
}

/// The goals on one server, with the figures of the largest size.
pub(super) fn goals(results: &[Measured]) -> Vec<Goal> {
    let Some(size) = results.iter().filter(|it| it.name == OWN).map(|it| it.size).max() else { return Vec::new() };
    let find = |name: &str| results.iter().find(|it| it.name == name && it.size == size);
    let Some(own) = find(OWN) else { return Vec::new() };
    let resources = size as f64;
    let goal = |text, is, most| Goal { text, is, most };
    let mut goals = vec![
        goal("writes per resource, cold start", own.cold.requests.writes as f64 / resources, WRITES_MOST),
        // The resource that is made meanwhile is no part of it.
        goal("writes of a restart", own.restart.requests.writes as f64 - WRITES_FLOOR, 0.0),
    ];
    if let Some(go) = find(GO) {
        goals.push(goal("CPU of a cold start, times controller-runtime's", own.cold.cpu_s / go.cold.cpu_s, 0.35));
        goals.push(goal("peak memory, times controller-runtime's", own.cold.peak_mb / go.cold.peak_mb, 0.334));
    }
    if let Some(kube) = find(KUBE) {
        goals.push(goal(
            "peak memory, times that of kube::runtime with all pruned",
            own.cold.peak_mb / kube.cold.peak_mb,
            1.0,
        ));
    }
    let others = || results.iter().filter(|it| it.size == size && it.name != OWN);
    if let Some(best) = others().map(|it| it.update.p99_ms).min_by(f64::total_cmp) {
        goals.push(goal("p99 from a change to settled, times the best of the others", own.update.p99_ms / best, 1.0));
    }
    if let Some(best) = others().map(|it| it.restart.p99_ms).min_by(f64::total_cmp) {
        goals.push(goal(
            "a new resource after a restart, times the best of the others",
            own.restart.p99_ms / best,
            1.0,
        ));
    }
    if let Some(slope) = slope_kb(results, OWN) {
        goals.push(goal("memory per further resource, KB", slope, 2.0));
    }
    goals
}

/// Kilobytes of peak memory for each further resource, between the smallest and the largest size.
pub(super) fn slope_kb(results: &[Measured], name: &str) -> Option<f64> {
    let own = || results.iter().filter(|it| it.name == name);
    let (least, most) = (own().min_by_key(|it| it.size)?, own().max_by_key(|it| it.size)?);
    (most.size > least.size).then(|| (most.cold.peak_mb - least.cold.peak_mb) * 1e3 / (most.size - least.size) as f64)
}

/// Ratios against every other contender, and the goals, for each server.
pub(super) fn json(results: &[Measured]) -> Value {
    by_server(results).iter().map(|(server, results)| (server.name().to_owned(), of_server(results))).collect()
}

fn of_server(results: &[Measured]) -> Value {
    let own = |size: usize| results.iter().find(|it| it.name == OWN && it.size == size);
    let mut ratios = serde_json::Map::new();
    for other in results.iter().filter(|it| it.name != OWN) {
        let Some(own) = own(other.size) else { continue };
        let ratio = |own: f64, other: f64| if other > 0.0 { json!(own / other) } else { Value::Null };
        ratios.insert(
            format!("{}_{}", other.name, other.size),
            json!({
                "writes": ratio(own.cold.requests.writes as f64, other.cold.requests.writes as f64),
                "cpu": ratio(own.cold.cpu_s, other.cold.cpu_s),
                "memory": ratio(own.cold.peak_mb, other.cold.peak_mb),
                "wall": ratio(own.cold.wall_s, other.cold.wall_s),
                "bytes": ratio(own.cold.wire_mb, other.cold.wire_mb),
                "update_p50": ratio(own.update.p50_ms, other.update.p50_ms),
                "update_p99": ratio(own.update.p99_ms, other.update.p99_ms),
                "drift_p99": ratio(own.drift.p99_ms, other.drift.p99_ms),
                "restart_cpu": ratio(own.restart.cpu_s, other.restart.cpu_s),
                "restart_new": ratio(own.restart.p99_ms, other.restart.p99_ms),
            }),
        );
    }
    let goals: Vec<Value> = goals(results)
        .iter()
        .map(|goal| json!({"goal": goal.text, "is": goal.is, "most": goal.most, "met": goal.met()}))
        .collect();
    json!({"ratios": ratios, "goals": goals})
}
