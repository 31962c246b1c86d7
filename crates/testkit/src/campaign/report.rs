//! What a campaign tried and found, property by property.

use std::collections::BTreeMap;
use std::fmt;

use crate::lab::Report;

/// How changes of one property went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// How many values were accepted.
    pub accepted: usize,
    /// Values that the schema allows and that were refused all the same, by a rule, each with the answer.
    pub refused: Vec<String>,
    /// How many values were refused that the schema forbids.
    pub offences: usize,
    /// Whether something followed from one of them.
    pub has_effect: bool,
}

impl Tried {
    pub(crate) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused.extend(other.refused.iter().cloned());
        self.offences += other.offences;
        self.has_effect |= other.has_effect;
    }

    /// Whether the property was changed: at least one value was accepted.
    pub fn is_covered(&self) -> bool {
        self.accepted > 0
    }
}

/// What a campaign tried and found.
#[derive(Clone, Debug, Default)]
pub struct CampaignReport {
    /// The runs and the findings.
    pub report: Report,
    /// The properties that hold values, by JSON pointer, and how their changes went.
    pub properties: BTreeMap<String, Tried>,
}

impl CampaignReport {
    /// How many properties there are, and how many of them were changed.
    pub fn coverage(&self) -> (usize, usize) {
        (self.properties.len(), self.properties.values().filter(|tried| tried.is_covered()).count())
    }

    /// Fails the test if something was found.
    ///
    /// # Panics
    /// If something was found: the message is the report.
    pub fn assert(&self) {
        assert!(self.report.findings.is_empty(), "{self}");
    }
}

impl fmt::Display for CampaignReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.report)?;
        let (all, covered) = self.coverage();
        let percent = (covered * 100).checked_div(all).unwrap_or(100);
        writeln!(f, "{covered} of {all} properties were changed ({percent} %)")?;
        for (path, tried) in &self.properties {
            let Tried { accepted, refused, offences, has_effect } = tried;
            let rules = refused.len();
            let effect = if *has_effect || *accepted == 0 { "" } else { ", without an effect" };
            writeln!(f, "  {path}: {accepted} accepted{effect}, {offences} refused by the schema, {rules} by rules")?;
        }
        Ok(())
    }
}
