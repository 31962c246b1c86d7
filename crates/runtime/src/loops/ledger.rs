//! The own writes of the last minute, by object and field.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use serde_json::Value;

use super::compare::FieldChange;
use crate::key::ObjectKey;

/// What is remembered.
const WINDOW: Duration = Duration::from_secs(300);
/// An object that is written less often than this in the window is not looked at.
const WRITES_MIN: usize = 4;
/// The same change as often as this in the window is a fight, if it is not this process that takes it back each time.
const SAME_CHANGE_MAX: usize = 5;
/// Any change of one field as often as this …
const CHANGES_MAX: usize = 60;
/// … in this time is a loop: nothing that settles changes so often.
const CHANGES_WINDOW: Duration = Duration::from_secs(60);
/// How many objects are remembered; when there are more, it begins anew.
const OBJECTS_MAX: usize = 2048;

/// An object, by a hash of its group, plural and key: there may be many, and two in one cost no more than a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectId(u64);

impl ObjectId {
    pub(super) fn of(group: &str, plural: &str, key: &ObjectKey) -> Self {
        let mut hasher = DefaultHasher::new();
        (group, plural, key).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// What was written lately.
#[derive(Debug, Default)]
pub(super) struct Ledger(HashMap<ObjectId, Past>);

#[derive(Debug, Default)]
struct Past {
    writes: VecDeque<Duration>,
    /// When a field was changed, and a hash of from what to what. Most objects are not looked at so closely.
    fields: Option<Box<Fields>>,
}

type Fields = HashMap<String, VecDeque<(Duration, u64)>>;

/// A field in a loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flap {
    change: FieldChange,
    times: usize,
    within: Duration,
    /// Whether it is always the same change.
    fight: bool,
}

impl Ledger {
    /// Counts a write, and tells whether the object is written often enough to look closer.
    pub(super) fn is_busy(&mut self, object: ObjectId, now: Duration) -> bool {
        if self.0.len() >= OBJECTS_MAX {
            self.0.retain(|_, past| past.writes.back().is_some_and(|last| now.saturating_sub(*last) < WINDOW));
        }
        if self.0.len() >= OBJECTS_MAX {
            self.0.clear();
        }
        let past = self.0.entry(object).or_default();
        past.writes.push_back(now);
        while past.writes.front().is_some_and(|first| now.saturating_sub(*first) >= WINDOW) {
            past.writes.pop_front();
        }
        if past.writes.len() > CHANGES_MAX {
            past.writes.pop_front();
        }
        past.writes.len() >= WRITES_MIN
    }

    /// Takes in what a write changed, and returns the first field that is in a loop by now.
    pub(super) fn enter(&mut self, object: ObjectId, changes: Vec<FieldChange>, now: Duration) -> Option<Flap> {
        let past = self.0.get_mut(&object)?;
        let fields = past.fields.get_or_insert_default();
        fields.retain(|_, times| times.back().is_some_and(|(last, _)| now.saturating_sub(*last) < WINDOW));
        let mut found = None;
        for change in changes {
            let times = fields.entry(change.path.clone()).or_default();
            let flap = enter(times, change, now);
            found = found.or(flap);
        }
        found
    }
}

/// Takes in one change of a field that was changed at `times` before.
fn enter(times: &mut VecDeque<(Duration, u64)>, change: FieldChange, now: Duration) -> Option<Flap> {
    let (hash, reverse) = (hash_of(&change.from, &change.to), hash_of(&change.to, &change.from));
    times.push_back((now, hash));
    while times.front().is_some_and(|(first, _)| now.saturating_sub(*first) >= WINDOW) || times.len() > CHANGES_MAX {
        times.pop_front();
    }
    let same: Vec<_> = times.iter().filter(|(_, other)| *other == hash).map(|(at, _)| *at).collect();
    let is_own_return = times.iter().any(|(_, other)| *other == reverse);
    if same.len() >= SAME_CHANGE_MAX && !is_own_return {
        let within = now.saturating_sub(same.first().copied().unwrap_or(now));
        return Some(Flap { change, times: same.len(), within, fight: true });
    }
    let within = now.saturating_sub(times.front().map_or(now, |(first, _)| *first));
    let is_busy = times.len() >= CHANGES_MAX && within < CHANGES_WINDOW;
    is_busy.then_some(Flap { change, times: times.len(), within, fight: false })
}

impl Flap {
    /// Which field, and how often.
    pub(super) fn field(&self, kind: &str, name: &str) -> String {
        let Self { change, times, within, .. } = self;
        format!("{} of {kind} {name} was changed {times} times within {}s", change.path, within.as_secs().max(1))
    }

    /// The loop in words; the values of Secrets are not told.
    pub(super) fn describe(&self, kind: &str, name: &str) -> String {
        let Self { change, times, within, fight } = self;
        let (path, seconds) = (&change.path, within.as_secs().max(1));
        if !fight {
            return format!("{path} of {kind} {name} has got a new value {times} times within {seconds}s");
        }
        let is_plain = |value: &Value| !value.is_object() && !value.is_array();
        let values = if kind != "Secret" && is_plain(&change.from) && is_plain(&change.to) {
            format!(" from {} to {}", change.from, change.to)
        } else {
            String::new()
        };
        format!(
            "{path} of {kind} {name} was changed{values} {times} times within {seconds}s: somebody else changes it back; \
             let only one of the two set it"
        )
    }
}

fn hash_of(from: &Value, to: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (from.to_string(), to.to_string()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> ObjectId {
        ObjectId::of("apps", "deployments", &ObjectKey::namespaced("a", "web"))
    }

    /// The loop that is found when `values` are written one after the other, `gap` apart, each from the value `from`.
    fn check(values: impl IntoIterator<Item = u64>, from: Option<u64>, gap: Duration) -> Option<String> {
        let (mut ledger, mut last) = (Ledger::default(), 0);
        for (index, value) in values.into_iter().enumerate() {
            let now = gap * u32::try_from(index).unwrap();
            let change =
                FieldChange { path: "spec.replicas".into(), from: from.unwrap_or(last).into(), to: value.into() };
            last = value;
            if ledger.is_busy(object(), now)
                && let Some(flap) = ledger.enter(object(), vec![change], now)
            {
                return Some(flap.describe("Deployment", "web"));
            }
        }
        None
    }

    #[test]
    fn a_fight_and_a_value_that_is_always_new_are_loops_and_progress_is_not() {
        let second = Duration::from_secs(1);
        let fight = check([3; 20], Some(5), second).unwrap();
        assert!(
            fight.starts_with("spec.replicas of Deployment web was changed from 5 to 3 5 times within 4s"),
            "{fight}"
        );
        assert_eq!(check([3; 20], Some(5), 80 * second), None, "now and then is no loop");
        assert_eq!(check(0..500, None, 2 * second), None, "a rollout makes progress");
        assert_eq!(
            check([1, 2].repeat(20), None, 10 * second),
            None,
            "what this process itself takes back is no fight"
        );
        let busy = check(0..500, None, second / 10).unwrap();
        assert_eq!(busy, "spec.replicas of Deployment web has got a new value 60 times within 5s");
    }
}
