//! The check of conversions: both ways, with objects that are made after the schemas.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::{Chain, Version};
use crate::difference::words;
use crate::names;
use crate::sample::{Dice, Fill, offence, value};

/// How many objects of each version are sent around.
const OBJECTS: u64 = 200;

/// A field that does not come back by itself: it is kept in an annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The version that has the field.
    pub from: &'static str,
    /// The version that has no place for it.
    pub to: &'static str,
    /// Where it is.
    pub field: String,
    /// A value of it.
    pub example: Option<Value>,
    /// What comes back in its place.
    pub returned: Option<Value>,
}

/// A value that a function makes and that the API server refuses in the other version.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The version that the object was in.
    pub from: &'static str,
    /// The version that it became.
    pub to: &'static str,
    /// Where the value is.
    pub field: String,
    /// What is wrong with it.
    pub why: String,
}

/// What the functions between versions lose, and so is kept in annotations, and what they make that is refused.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    lost: Vec<Loss>,
    refused: Vec<Refused>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.field)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {} is refused", self.from, self.to, self.field)
    }
}

impl Losses {
    /// All fields that are lost.
    pub fn all(&self) -> &[Loss] {
        &self.lost
    }

    /// All fields that are made and refused.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Nothing is lost but what is expected, each as `v1 -> v1beta1: spec.weight`, and nothing is made that the other version
    /// refuses, but what is expected, each as `v1 -> v1beta1: spec.size is refused`.
    ///
    /// # Panics
    /// If anything else is lost or refused, or something that is expected is not.
    #[track_caller]
    pub fn assert_only(&self, expected: &[&str]) {
        let refused = self.refused.iter().map(ToString::to_string);
        let found: Vec<String> = self.lost.iter().map(ToString::to_string).chain(refused).collect();
        let unexpected = self.lost.iter().filter(|loss| !expected.contains(&loss.to_string().as_str()));
        let mut complaints: Vec<String> = unexpected
            .map(|loss| {
                let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
                format!("{loss} is lost: {} comes back as {}", show(&loss.example), show(&loss.returned))
            })
            .collect();
        let refused = self.refused.iter().filter(|refused| !expected.contains(&refused.to_string().as_str()));
        complaints.extend(refused.map(|refused| format!("{refused}: it {}", refused.why)));
        let missing = expected.iter().filter(|line| !found.iter().any(|found| found == *line));
        complaints.extend(missing.map(|line| format!("{line} does not happen (any more)")));
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

/// Sends objects of every version to every other and back.
pub(super) fn losses(chain: &Chain) -> Losses {
    let (mut found, mut refused) = (BTreeMap::new(), BTreeMap::new());
    let schemas: Vec<Value> = chain.versions.iter().map(schema).collect();
    for (index, version) in chain.versions.iter().enumerate() {
        for object in objects(version) {
            for (other, to) in chain.versions.iter().enumerate().filter(|(other, _)| *other != index) {
                let away = send(chain, object.clone(), &to.api_version);
                if other.abs_diff(index) == 1 {
                    collect(&mut found, (version, to), &away);
                    // What is refused as it is says nothing of what it becomes.
                    let was_sound = offence(&schemas[index], &object).is_none();
                    let offence = offence(&schemas[other], &away).filter(|_| was_sound);
                    refuse(&mut refused, (version, to), offence);
                }
                let back = send(chain, away.clone(), &version.api_version);
                assert_eq!(back, object, "not restored after it was {away}");
            }
        }
    }
    Losses { lost: found.into_values().collect(), refused: refused.into_values().collect() }
}

/// Notes where the API server would refuse what became of an object.
fn refuse(found: &mut BTreeMap<String, Refused>, (from, to): (&Version, &Version), offence: Option<(String, String)>) {
    let Some((field, why)) = offence else { return };
    let refused = Refused { from: from.facts.version, to: to.facts.version, field, why };
    found.entry(refused.to_string()).or_insert(refused);
}

type Found = BTreeMap<String, Loss>;

/// The losses are what the way away had to keep.
fn collect(found: &mut Found, (from, to): (&Version, &Version), away: &Value) {
    let text = away["metadata"]["annotations"][names::kept(from.facts.version)].as_str().unwrap_or("[]");
    let kept: Vec<crate::difference::Difference> = serde_json::from_str(text).unwrap_or_default();
    for difference in kept {
        let loss = Loss {
            from: from.facts.version,
            to: to.facts.version,
            field: words(&difference.path),
            example: difference.value,
            returned: difference.other,
        };
        found.entry(loss.to_string()).or_insert(loss);
    }
}

fn send(chain: &Chain, object: Value, to: &str) -> Value {
    let text = object.to_string();
    chain.convert(object, to).unwrap_or_else(|error| panic!("{text} does not become {to}: {error}"))
}

fn schema(version: &Version) -> Value {
    let mut definition = (version.define)();
    let schema = definition.spec.versions.pop().and_then(|version| version.schema?.open_api_v3_schema);
    serde_json::to_value(schema).unwrap_or_default()
}

/// Objects of a version as its type writes them.
fn objects(version: &Version) -> Vec<Value> {
    let schema = schema(version);
    let make = |seed: u64| {
        let fill = match seed {
            0 => Fill::Nothing,
            1 => Fill::Everything,
            _ => Fill::Some,
        };
        let mut object = value(&schema, fill, &mut Dice::new(seed));
        object["apiVersion"] = version.api_version.clone().into();
        object["kind"] = version.facts.kind.into();
        object["metadata"] = json!({"name": "sample", "uid": "1", "labels": {"a": "b"}});
        let mut object = (version.normalize)(object).ok()?;
        object["metadata"] = json!({"name": "sample", "uid": "1", "labels": {"a": "b"}});
        Some(object)
    };
    let objects: Vec<Value> = (0..OBJECTS).filter_map(make).collect();
    let least = OBJECTS / 4;
    assert!(
        objects.len() as u64 >= least,
        "of {OBJECTS} objects made after the schema of {} its type reads only {}: the type is narrower than its schema",
        version.api_version,
        objects.len(),
    );
    objects
}
