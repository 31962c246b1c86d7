//! Chaos in columns.

use kube::ResourceExt;
use windlass_node::chaos::{Chaos, Phase};

use crate::view::columns::lay_out;

/// A line for each, with its namespace where there are several.
pub(crate) fn table(all: &[Chaos], with_namespace: bool) -> String {
    let mut header: Vec<String> =
        ["NAME", "FAULT", "PHASE", "ROUND", "VICTIMS", "ENDS", "MESSAGE"].map(str::to_owned).into();
    if with_namespace {
        header.insert(0, "NAMESPACE".to_owned());
    }
    let rows = all.iter().map(|chaos| row(chaos, with_namespace));
    lay_out(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

fn row(chaos: &Chaos, with_namespace: bool) -> Vec<String> {
    let status = chaos.status.clone().unwrap_or_default();
    let mut victims: Vec<String> = status.victims.iter().map(|victim| victim.name.clone()).collect();
    victims.dedup();
    let shown = if victims.is_empty() { "-".to_owned() } else { victims.join(",") };
    let ends = status.ends_at.filter(|_| status.phase == Phase::Active);
    let mut row = vec![
        chaos.name_any(),
        status.fault,
        format!("{:?}", status.phase),
        status.round.to_string(),
        shown,
        ends.map_or_else(|| "-".to_owned(), |end| end.0.strftime("%H:%M:%S").to_string()),
        status.message,
    ];
    if with_namespace {
        row.insert(0, chaos.namespace().unwrap_or_default());
    }
    row
}
