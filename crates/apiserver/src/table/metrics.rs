//! Cells of NodeMetrics and PodMetrics.

use serde_json::Value;
use windlass_schema::quantity;

use super::view::{View, text};

/// The cells of a NodeMetrics.
pub(super) fn node(view: &View<'_>) -> Vec<Value> {
    let usage = |resource: &str| Value::from(view.text(&format!("usage.{resource}")));
    vec![view.name().into(), usage("cpu"), usage("memory"), view.text("window").into()]
}

/// The cells of a PodMetrics: the sums of its containers.
pub(super) fn pod(view: &View<'_>) -> Vec<Value> {
    let sum = |resource: &str| -> i128 {
        let used = view.list("containers").iter().map(|container| text(container, &format!("usage.{resource}")));
        used.filter_map(quantity::nanos).sum()
    };
    let cpu = quantity::canonical(&format!("{}n", sum("cpu")));
    let memory = quantity::canonical(&format!("{}Ki", sum("memory") / 1_000_000_000 / 1024));
    vec![view.name().into(), cpu.into(), memory.into(), view.text("window").into()]
}
