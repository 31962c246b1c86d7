//! What the user does in one run of a campaign.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::Value;

use super::changes::{Changes, Deed};
use super::properties::Property;
use super::report::Tried;
use crate::lab::{self, Change, Item, Rules, Settled, User};

/// The step at which the property is changed; that it was made is step 0.
pub(crate) const CHANGED: usize = 1;
/// The step at which it is changed back.
pub(crate) const REVERTED: usize = 2;
/// The step at which the resource goes.
pub(crate) const GONE: usize = 3;
/// The step at which the resource was made with the change.
const MADE: usize = 4;
/// How long nothing may happen after a change.
const STAYS: Duration = Duration::from_secs(30);

/// The resource, and all that is done to it.
pub(crate) struct Course {
    pub(crate) item: Item,
    pub(crate) object: Value,
    pub(crate) given: Vec<Value>,
    pub(crate) changes: Changes,
    pub(crate) rules: Arc<Rules>,
    /// How each change went.
    pub(crate) board: Mutex<BTreeMap<Change, Tried>>,
}

impl Course {
    /// One run: the resource is made, changed as the plan says, changed back, and goes.
    pub(crate) async fn run(self: Arc<Self>, user: User) {
        for given in &self.given {
            let made = user.make(&Item::of_object(given), given.clone()).await;
            made.unwrap_or_else(|error| panic!("{given} is refused: {error}"));
        }
        let made = user.make(&self.item, self.object.clone()).await;
        made.unwrap_or_else(|error| panic!("the resource is refused: {error}"));
        user.settle().await;
        if let Some(change) = user.plan().change().cloned() {
            let tried = match self.changes.deeds.get(&change) {
                Some(Deed::Write(spec)) => self.write(&user, &change, spec).await,
                Some(Deed::Offend(offences)) => self.offend(&user, &change, offences).await,
                None => panic!("{}:{} is no change of this campaign", change.path, change.to),
            };
            self.board.lock().expect("a run that panicked has failed the test").insert(change, tried);
        }
        user.skip_to(GONE);
        user.remove(&self.item, &DeleteParams::default()).await;
    }

    async fn write(&self, user: &User, change: &Change, spec: &Value) -> Tried {
        match user.set_spec(&self.item, spec).await {
            Ok(_) => self.changed(user, change).await,
            Err(kube::Error::Api(status)) => self.made_with(user, change, spec, status.message.clone()).await,
            Err(error) => panic!("{} cannot be changed: {error}", change.path),
        }
    }

    /// The change is accepted: it is judged, and taken back.
    async fn changed(&self, user: &User, change: &Change) -> Tried {
        user.settle().await;
        user.stays(STAYS).await;
        let mut tried = Tried { accepted: 1, has_effect: self.has_effect(user, CHANGED), ..Tried::default() };
        if let Some(what) = self.unexplained(user) {
            user.violate(format!("{}:{} is accepted, and {what}", change.path, change.to));
        }
        match user.set_spec(&self.item, &self.object["spec"]).await {
            Ok(_) => user.settle().await,
            // A property that can only grow is refused, and says so.
            Err(error) => tried.refused.push(format!("{} cannot be taken back: {error}", change.to)),
        }
        tried
    }

    /// The change is refused for what is there: it may be right for what is new.
    async fn made_with(&self, user: &User, change: &Change, spec: &Value, why: String) -> Tried {
        let mut tried = Tried { refused: vec![format!("{}: {why}", change.to)], ..Tried::default() };
        user.remove(&self.item, &DeleteParams::default()).await;
        user.settle().await;
        let mut object = self.object.clone();
        object["spec"] = spec.clone();
        if user.make(&self.item, object).await.is_ok() {
            user.skip_to(MADE);
            user.settle().await;
            tried.accepted = 1;
            tried.has_effect = self.has_effect(user, MADE);
            if let Some(what) = self.unexplained(user) {
                user.violate(format!("{}:{} is accepted for what is new, and {what}", change.path, change.to));
            }
        }
        tried
    }

    /// Writes what the schema forbids: each must be refused, with the path of the field.
    async fn offend(&self, user: &User, change: &Change, offences: &[(String, Value)]) -> Tried {
        let mut tried = Tried::default();
        let property = self.changes.properties.iter().find(|it| it.pointer() == change.path);
        let path = property.map(Property::dotted).unwrap_or_default();
        for (name, spec) in offences {
            match user.set_spec(&self.item, spec).await {
                Err(kube::Error::Api(status)) if status.message.contains(&path) => tried.offences += 1,
                Err(error) => user.violate(format!("{}:{name} is refused without {path}: {error}", change.path)),
                Ok(_) => {
                    user.violate(format!("{}:{name} is accepted, though the schema forbids it", change.path));
                    let _ = user.set_spec(&self.item, &self.object["spec"]).await;
                }
            }
        }
        tried
    }

    /// Whether something of what the operator does is other than before the change.
    fn has_effect(&self, user: &User, step: usize) -> bool {
        let judge = user.judge();
        let view = |step: usize| {
            let state: &Settled = judge.states.iter().rev().find(|state| state.step == step)?;
            let mut view = lab::view(state, &self.rules);
            // What the user wrote is no effect of it.
            if let Some(own) = view.get_mut(&self.item.key()).and_then(Value::as_object_mut) {
                own.retain(|name, _| name == "status");
            }
            Some(view)
        };
        view(0) != view(step)
    }

    /// A resource that was ready and is not ready any more must say why.
    fn unexplained(&self, user: &User) -> Option<String> {
        let judge = user.judge();
        let before = judge.states.first()?.form.get(&self.item.key())?.clone();
        let now = judge.object(&self.item.key())?;
        let was_ready = judge.states.first()?.was_ready.contains(&self.item.key());
        (was_ready && !lab::is_ready(now) && !explains(&before["status"], now))
            .then(|| "the resource is not ready any more, and its status does not say why".to_owned())
    }
}

/// Whether the status says of the wish of now that something is wrong with it, and not what it said `before`.
fn explains(before: &Value, object: &Value) -> bool {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    let is_of_now = |seen: &Value| seen.is_null() || seen == generation;
    let speaks = |condition: &Value| {
        let word = |name: &str| condition[name].as_str().unwrap_or_default();
        let is_bad = match word("type") {
            "Ready" | "Available" | "DependencyReady" => word("status") != "True",
            "Degraded" | "Stalled" | "Failed" | "Progressing" => word("status") == "True",
            _ => false,
        };
        is_bad
            && is_of_now(&condition["observedGeneration"])
            && !(word("message").is_empty() && word("reason").is_empty())
    };
    let conditions = status["conditions"].as_array();
    let words = ["phase", "state", "message", "reason", "error", "note"];
    let says_else =
        |name: &&str| status[*name].as_str().is_some_and(|word| !word.is_empty() && status[*name] != before[*name]);
    conditions.is_some_and(|all| all.iter().any(speaks))
        || (is_of_now(&status["observedGeneration"]) && words.iter().any(says_else))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_speaks_of_the_wish_of_now() {
        let condition = |name: &str, truth: &str, message: &str, seen: u32| {
            json!({"metadata": {"generation": 2}, "status": {"conditions": [
                {"type": name, "status": truth, "message": message, "observedGeneration": seen}]}})
        };
        let phase = |phase: &str, seen: u32| json!({"metadata": {"generation": 2}, "status": {"phase": phase, "observedGeneration": seen}});
        let rows = [
            (condition("Ready", "False", "no such image", 2), true),
            (condition("Ready", "False", "no such image", 1), false),
            (condition("Ready", "False", "", 2), false),
            (condition("Ready", "True", "fine", 2), false),
            (condition("Stalled", "True", "too many", 2), true),
            (phase("Blocked", 2), true),
            (phase("Blocked", 1), false),
            (phase("Ready", 2), false),
            (json!({"metadata": {"generation": 2}}), false),
        ];
        for (object, expected) in rows {
            assert_eq!(explains(&json!({"phase": "Ready"}), &object), expected, "{object}");
        }
    }
}
