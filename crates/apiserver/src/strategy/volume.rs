//! Persistent volumes: since when they are in their phase.

use serde_json::{Value, json};

const SINCE: &str = "lastPhaseTransitionTime";

/// A new volume is pending since it was made.
pub(super) fn prepare_create(object: &mut Value) {
    let now = object["metadata"]["creationTimestamp"].clone();
    object["status"] = json!({"phase": "Pending", SINCE: now});
}

/// Another phase began now, unless whoever says so also says when.
pub(super) fn prepare_status(object: &mut Value, old: &Value, now: &str) {
    let (phase, since) = (&object["status"]["phase"], &object["status"][SINCE]);
    let (old_phase, old_since) = (&old["status"]["phase"], &old["status"][SINCE]);
    let since = match phase == old_phase {
        true if since.is_null() => old_since.clone(),
        false if since.is_null() || since == old_since => now.into(),
        _ => return,
    };
    if !since.is_null() {
        object["status"][SINCE] = since;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: Value, new: Value, expected: Value) {
        let mut object = json!({"status": new});
        prepare_status(&mut object, &json!({"status": old}), "now");
        assert_eq!(object["status"], expected);
    }

    #[test]
    fn a_phase_begins_when_it_changes() {
        let at = |phase: &str, since: &str| json!({"phase": phase, SINCE: since});
        check(at("Pending", "then"), json!({"phase": "Bound"}), at("Bound", "now"));
        check(at("Pending", "then"), at("Bound", "then"), at("Bound", "now"));
        check(at("Pending", "then"), at("Bound", "tuesday"), at("Bound", "tuesday"));
        check(at("Bound", "then"), json!({"phase": "Bound"}), at("Bound", "then"));
        check(json!({"phase": "Bound"}), json!({"phase": "Bound"}), json!({"phase": "Bound"}));
    }

    #[test]
    fn a_new_volume_is_pending_since_it_was_made() {
        let mut object = json!({"metadata": {"creationTimestamp": "now"}, "status": {"phase": "Bound"}});
        prepare_create(&mut object);
        assert_eq!(object["status"], json!({"phase": "Pending", SINCE: "now"}));
    }
}
