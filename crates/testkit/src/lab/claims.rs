//! What resources say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::judge::Settled;
use super::world::Change;

/// Resources that began to say that they are ready.
#[derive(Default)]
pub(crate) struct Claims(Vec<Claim>);

struct Claim {
    resource: String,
    /// The wish that it spoke of.
    generation: Value,
    /// What was there.
    there: BTreeSet<String>,
}

impl Claims {
    /// Takes note of a resource that says from now on that it is ready, as it is wanted now, and of what is there.
    pub(crate) fn notice(&mut self, own: &[String], change: &Change<'_>) {
        let is_own = own.iter().any(|prefix| change.key.starts_with(prefix));
        let Some(new) = change.new.as_ref().filter(|_| is_own) else { return };
        let was = change.old.as_ref().is_some_and(is_ready);
        if is_ready(new) && !was {
            self.0.push(Claim {
                resource: change.key.to_owned(),
                generation: new["metadata"]["generation"].clone(),
                there: change.world.objects().keys().cloned().collect(),
            });
        }
    }

    /// A resource that said that it was ready before what belongs to it was there.
    pub(crate) fn false_one(self, now: &Settled, objects: &BTreeMap<String, Value>) -> Option<String> {
        self.0.into_iter().find_map(|Claim { resource, generation, there }| {
            let missing = now.made.iter().find(|key| !there.contains(*key))?;
            let is_same_wish = objects.get(&resource)?["metadata"]["generation"] == generation;
            is_same_wish.then(|| format!("{resource} said that it was ready before {missing} was there"))
        })
    }
}

/// Whether a resource says that it is ready as it is wanted now.
pub(crate) fn is_ready(object: &Value) -> bool {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    let conditions = status["conditions"].as_array();
    let is_true = |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
    let condition = conditions.and_then(|all| all.iter().find(is_true));
    let says_so = condition.is_some() || status["phase"] == "Ready" || status["ready"] == true;
    let seen = condition.map_or(&Value::Null, |condition| &condition["observedGeneration"]);
    let seen = if seen.is_null() { &status["observedGeneration"] } else { seen };
    says_so && (seen.is_null() || seen == generation)
}
