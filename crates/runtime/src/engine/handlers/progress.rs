//! What is remembered of a resource in an annotation of it: which handlers are done with what, and which are due when.
//!
//! It holds ids, counts, times and hashes; of the resource itself only the parts that `on_field` handlers chose and want to
//! see again, and those are in the spec of the same object. Texts of failures and results are not in it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A chosen part of a spec that is longer than this as JSON is remembered by its hash alone.
pub(super) const VALUE_BYTES_MAX: usize = 4096;
/// All chosen parts together; annotations of an object have 256 KiB in all.
const VALUES_BYTES_MAX: usize = 32 * 1024;

/// The progress of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Progress {
    /// Whose progress: a copy of the object under another name, or a restored one, begins anew.
    pub(crate) uid: String,
    /// The generation that was last looked at.
    pub(crate) generation: i64,
    /// Whether all that is to be done at the creation is done.
    pub(crate) created: bool,
    /// A hash of the last value of the switch that asks for another try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forced: Option<String>,
    /// How far each handler is, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) steps: BTreeMap<String, Step>,
    /// When timers with long intervals last ran.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) timers: BTreeMap<String, Timestamp>,
}

/// How far one handler is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    /// What it was last done with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Mark>,
    /// What was tried since; something may be half done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<Tries>,
}

/// A state of what a handler looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Mark {
    /// The generation of the resource.
    pub(crate) generation: i64,
    /// A hash of what the handler looks at: the spec, or its part of it.
    pub(crate) hash: String,
    /// The part itself, for handlers that want to see it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

impl Mark {
    /// Whether two marks are of the same state. The same generation is the same spec, even if another version of the
    /// operator reads it otherwise; the same content is, too, even if it was another in between.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.generation == other.generation || self.hash == other.hash
    }
}

/// Attempts that did not succeed, for one state of the resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tries {
    /// How many were begun.
    pub(crate) count: u32,
    /// When the first was.
    pub(crate) since: Timestamp,
    /// When the next may begin; at once if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Timestamp>,
    /// Whether there is to be none before a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gave_up: bool,
    /// For which state; the value is not in it.
    #[serde(rename = "for")]
    pub(crate) target: Mark,
}

impl Progress {
    /// Reads an annotation; what cannot be read, or is of another object, is none.
    pub(crate) fn read(text: Option<&str>, uid: &str) -> Option<Self> {
        let progress: Self = serde_json::from_str(text?).ok()?;
        (progress.uid == uid).then_some(progress)
    }

    /// The annotation. Old values that are too much together are left out: then handlers are not told them.
    pub(crate) fn write(&self) -> String {
        let mut kept = self.clone();
        let mut left = VALUES_BYTES_MAX;
        for mark in kept.steps.values_mut().filter_map(|step| step.done.as_mut()) {
            let bytes = mark.value.as_ref().map_or(0, |value| value.to_string().len());
            if bytes > VALUE_BYTES_MAX || bytes > left {
                mark.value = None;
            } else {
                left -= bytes;
            }
        }
        serde_json::to_string(&kept).expect("maps with text keys and plain values are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_values(bytes: usize, count: usize) -> Progress {
        let mark = Mark { generation: 1, hash: "h".into(), value: Some("x".repeat(bytes).into()) };
        let step = Step { done: Some(mark), tries: None };
        let steps = (0..count).map(|index| (format!("field-{index:02}"), step.clone())).collect();
        Progress { uid: "u".into(), steps, ..Progress::default() }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_only_for_the_same_object() {
        let progress = with_values(10, 2);
        let text = progress.write();
        assert_eq!(Progress::read(Some(&text), "u"), Some(progress));
        for (text, uid) in [(Some(text.as_str()), "copy"), (Some("{"), "u"), (Some("[]"), "u"), (None, "u")] {
            assert_eq!(Progress::read(text, uid), None, "{text:?}");
        }
    }

    #[test]
    fn its_size_has_a_bound() {
        let kept = |progress: &Progress| {
            let read = Progress::read(Some(&progress.write()), "u").unwrap();
            read.steps.values().filter(|step| step.done.as_ref().unwrap().value.is_some()).count()
        };
        assert_eq!(kept(&with_values(VALUE_BYTES_MAX - 2, 3)), 3);
        assert_eq!(kept(&with_values(VALUE_BYTES_MAX, 3)), 0, "the hash is enough to notice a change");
        let many = with_values(4000, 64);
        assert_eq!(kept(&many), 8);
        assert!(many.write().len() < 64 * 1024);
    }
}
