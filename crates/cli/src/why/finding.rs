//! Findings: what keeps an object from being ready, the most specific first.

use std::collections::HashSet;

use serde_json::Value;

use super::facts::{Facts, message, text, title};
use super::{claim, deletion, operator, pod, workload};
use crate::view::readiness::{Readiness, judge};

/// How near to the root of the trouble a finding is. What comes first explains what comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// A person told the operator to do nothing.
    Choice,
    /// One thing is wrong, and it is known which.
    Cause,
    /// Somebody refuses.
    Refusal,
    /// The operator itself is in trouble.
    Operator,
    /// What follows from something else, or may do so.
    Effect,
}

/// Something that keeps an object from being ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) depth: Depth,
    /// What it is about: `Pod cache-1`.
    pub(crate) object: String,
    /// How many more are in the same trouble.
    pub(crate) others: usize,
    /// What is wrong.
    pub(crate) says: String,
    /// What to do about it, if that is known.
    pub(crate) advice: Option<String>,
}

impl Depth {
    /// The depth in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Cause => "cause",
            Self::Refusal => "refusal",
            Self::Operator => "operator",
            Self::Effect => "effect",
        }
    }
}

impl Finding {
    pub(crate) fn new(depth: Depth, object: &Value, says: impl Into<String>) -> Self {
        Self { depth, object: title(object), others: 0, says: says.into(), advice: None }
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// What keeps the object from being ready, the most specific first; nothing if it is ready.
pub(crate) fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings = operator::look(facts);
    for object in facts.tree.all() {
        findings.extend(deletion::look(object, facts));
        findings.extend(match text(&object["kind"]) {
            "Pod" => pod::look(object, facts),
            "PersistentVolumeClaim" => claim::look(object, facts),
            _ => workload::look(object, facts),
        });
    }
    findings.sort_by_key(|finding| finding.depth);
    let mut findings = merged(findings);
    if findings.is_empty() {
        findings.extend(own_words(facts));
    }
    findings
}

/// The same trouble of several objects is told once.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        let kind = |object: &str| object.split(' ').next().unwrap_or_default().to_owned();
        let is_same = |known: &&mut Finding| known.says == finding.says && kind(&known.object) == kind(&finding.object);
        match merged.iter_mut().find(is_same) {
            Some(known) if known.object != finding.object => known.others += 1,
            Some(_) => {}
            None => merged.push(finding),
        }
    }
    merged
}

/// What the object, or what is below it, says of itself: better than nothing.
fn own_words(facts: &Facts) -> Vec<Finding> {
    if matches!(judge(facts.object()), Readiness::Ready(_)) {
        return Vec::new();
    }
    let mut told = HashSet::new();
    let mut findings = Vec::new();
    // What is deepest is nearest to the cause.
    for object in facts.tree.all().into_iter().rev() {
        let says = match judge(object) {
            Readiness::Ready(_) => continue,
            Readiness::Waiting(text) | Readiness::Stalled(text) => text,
        };
        if findings.is_empty() && told.insert(says.clone()) {
            findings.push(Finding::new(Depth::Effect, object, says));
        }
    }
    findings
}

/// The last warning about an object, as a finding.
pub(crate) fn warned(object: &Value, facts: &Facts, reasons: &[&str]) -> Option<Finding> {
    let event = facts.event(object, reasons)?;
    Some(Finding::new(Depth::Cause, object, message(event)))
}
