//! Differences, alike ones together, the most frequent first.

use std::collections::BTreeMap;

use super::allowed::ALLOWED;
use super::call::Call;
use super::normal::Difference;

/// What of a value is shown.
const VALUE_MAX: usize = 400;
/// How much of what two values share is shown before they part.
const BEFORE: usize = 60;

/// What was compared so far.
#[derive(Default)]
pub(super) struct Report {
    trace: bool,
    /// Requests that both servers got.
    pub(super) requests: usize,
    groups: BTreeMap<Group, Found>,
    /// Requests and differences by resource.
    resources: BTreeMap<String, (usize, usize)>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    resource: String,
    verb: &'static str,
    place: String,
}

struct Found {
    count: usize,
    seed: u64,
    request: String,
    difference: Difference,
}

impl Report {
    /// A report of nothing; `trace` prints every request that is added.
    pub(super) fn new(trace: bool) -> Self {
        Self { trace, ..Self::default() }
    }

    /// Adds one comparison.
    pub(super) fn add(&mut self, resource: &str, call: &Call, seed: u64, difference: Option<Difference>) {
        if self.trace {
            println!("{seed}: {}", call.whole());
        }
        self.requests += 1;
        let row = self.resources.entry(resource.to_owned()).or_default();
        row.0 += 1;
        let Some(difference) = difference else { return };
        row.1 += 1;
        let group = Group { resource: resource.to_owned(), verb: call.verb, place: difference.place.clone() };
        let found = || Found { count: 0, seed, request: call.describe(), difference };
        self.groups.entry(group).or_insert_with(found).count += 1;
    }

    /// In how many requests the servers differed.
    pub(super) fn differences(&self) -> usize {
        self.resources.values().map(|(_, different)| different).sum()
    }

    /// Prints differences, then counts.
    pub(super) fn print(&self, limit: usize) {
        let mut groups: Vec<(&Group, &Found)> = self.groups.iter().collect();
        groups.sort_by_key(|(_, found)| std::cmp::Reverse(found.count));
        for (group, found) in groups.iter().take(limit) {
            println!("{} × {} {} at {}", found.count, group.resource, group.verb, group.place);
            println!("    story {}: {}", found.seed, found.request);
            let (kubernetes, windlass) = (&found.difference.kubernetes, &found.difference.windlass);
            println!("    kubernetes: {}", around(kubernetes, windlass));
            println!("    windlass:   {}", around(windlass, kubernetes));
        }
        if groups.len() > limit {
            println!("… and {} more (--show)", groups.len() - limit);
        }
        println!("\n{:<28}{:>10}{:>10}", "resource", "requests", "different");
        for (resource, (requests, different)) in &self.resources {
            println!("{resource:<28}{requests:>10}{different:>10}");
        }
        println!("{:<28}{:>10}{:>10}", "all", self.requests, self.differences());
        println!("\n{} requests, {} different, in {} classes", self.requests, self.differences(), self.groups.len());
        println!("{} differences are allowed, see docs/differential.md", ALLOWED.len());
    }
}

/// The text from a little before the place where it parts from the other.
fn around(text: &str, other: &str) -> String {
    let same = text.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    let start = same.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(start).take(VALUE_MAX).collect();
    if start > 0 { format!("…{shown}") } else { shown }
}
