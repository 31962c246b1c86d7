//! Which webhooks see an object a second time, because others changed it after them.

use std::collections::HashSet;

use serde_json::Value;

/// The memory of the two rounds of one request.
#[derive(Debug, Default)]
pub(super) struct Reinvocation {
    /// Whether something was changed that others may want to see.
    needed: bool,
    is_second: bool,
    /// Those that were called and want to be called again, should something change.
    called: HashSet<String>,
    /// Those after which something changed.
    due: HashSet<String>,
    /// The object as the first round left it.
    output: Value,
}

impl Reinvocation {
    /// Whether a second round is due.
    pub(super) fn is_needed(&self) -> bool {
        self.needed
    }

    /// Begins the second round with `object`.
    pub(super) fn begin(&mut self, object: &Value) {
        self.is_second = true;
        if self.output != *object {
            self.due.extend(self.called.drain());
        }
    }

    /// Whether `id` is called in this round.
    pub(super) fn calls(&self, id: &str) -> bool {
        !self.is_second || self.due.contains(id)
    }

    /// Notes that the object changed.
    pub(super) fn note_change(&mut self) {
        self.due.extend(self.called.drain());
        self.needed = true;
    }

    /// Notes that `id` was called and wants to see what others change after it.
    pub(super) fn note_call(&mut self, id: &str) {
        self.called.insert(id.to_owned());
    }

    /// Notes what a round left.
    pub(super) fn end(&mut self, object: &Value) {
        if !self.is_second && !self.called.is_empty() {
            self.output = object.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn those_before_a_change_are_called_again() {
        let mut rounds = Reinvocation::default();
        rounds.note_call("a");
        rounds.note_change();
        rounds.note_call("b");
        assert!(rounds.is_needed());
        rounds.end(&json!(1));
        rounds.begin(&json!(1));
        assert_eq!(["a", "b", "c"].map(|id| rounds.calls(id)), [true, false, false]);
    }

    #[test]
    fn a_change_by_plugins_counts_for_all() {
        let mut rounds = Reinvocation::default();
        rounds.note_change();
        rounds.note_call("a");
        rounds.end(&json!(1));
        rounds.begin(&json!(2));
        assert_eq!(["a", "b"].map(|id| rounds.calls(id)), [true, false]);
    }
}
