//! All changes of a campaign.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::candidates;
use super::change::changed;
use super::meaning::Meaning;
use super::properties::{self, Property};
use crate::lab::Change;

/// The name of the change that tries everything that must be refused.
pub(crate) const REFUSED: &str = "refused";

/// Of so many changes of a property one is also tried without a history.
const FRESH_EVERY: usize = 3;

/// What the user does in one run.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Writes this spec.
    Write(Value),
    /// Writes these, each with its name, which the schema must refuse.
    Offend(Vec<(String, Value)>),
}

/// What the campaign is about.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) properties: Vec<Property>,
    /// What is done, one property in turn after the other.
    pub(crate) order: Vec<Change>,
    pub(crate) deeds: BTreeMap<Change, Deed>,
    /// Changes that are also tried without a history.
    pub(crate) fresh: BTreeSet<Change>,
    /// The objects that the values speak of.
    pub(crate) given: Vec<Value>,
}

impl Changes {
    /// What can be changed in `object`, whose kind has `schema`; `hints` are values by pointer.
    pub(crate) fn of(schema: &Value, object: &Value, hints: &BTreeMap<String, Vec<Value>>) -> Self {
        let mut changes = Self { properties: properties::of(schema), ..Self::default() };
        let mut turns: Vec<(usize, Change)> = Vec::new();
        for property in &changes.properties {
            let pointer = property.pointer();
            let hints = hints.get(&pointer).map(Vec::as_slice).unwrap_or_default();
            let (deeds, meaning) = (deeds(schema, object, property, hints), Meaning::of(property));
            for given in meaning.into_iter().flat_map(Meaning::given) {
                if !changes.given.contains(&given) {
                    changes.given.push(given);
                }
            }
            for (turn, (to, deed)) in deeds.into_iter().enumerate() {
                let change = Change { path: pointer.clone(), to };
                if turn % FRESH_EVERY == 0 {
                    changes.fresh.insert(change.clone());
                }
                turns.push((turn, change.clone()));
                changes.deeds.insert(change, deed);
            }
        }
        turns.sort_by_key(|(turn, _)| *turn);
        changes.order = turns.into_iter().map(|(_, change)| change).collect();
        changes
    }
}

/// What is done with one property.
fn deeds(schema: &Value, object: &Value, property: &Property, hints: &[Value]) -> Vec<(String, Deed)> {
    let (spec_schema, spec) = (&schema["properties"]["spec"], &object["spec"]);
    let (mut deeds, mut offences) = (Vec::new(), Vec::new());
    for candidate in candidates::of(property, object.pointer(&property.pointer()), hints) {
        let Some(new) = changed(spec_schema, spec, &property.path[1..], candidate.value.as_ref()) else { continue };
        if new == *spec {
            continue;
        }
        if candidate.is_valid {
            deeds.push((candidate.name, Deed::Write(new)));
        } else {
            offences.push((candidate.name, new));
        }
    }
    if !offences.is_empty() {
        deeds.push((REFUSED.to_owned(), Deed::Offend(offences)));
    }
    deeds
}
