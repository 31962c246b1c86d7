//! Deciding what a delete does to an object: mark it, wait, or let it go.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_schema::Kind;

use super::options::{DeleteOptions, Propagation};
use crate::{
    object::{Object, timestamp},
    strategy,
};

/// The finalizer under which dependents lose their owner reference first.
const ORPHAN: &str = "orphan";
/// The finalizer under which dependents go first.
const FOREGROUND: &str = "foregroundDeletion";

/// What a delete does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deletion {
    /// The object goes at once.
    Remove,
    /// The object goes at once, but watchers see first that it was told to: its kind knows grace, and this is none.
    MarkAndRemove(Value),
    /// The object stays, marked.
    Mark(Value),
    /// Everything was said already.
    Pending,
}

/// What a delete with `options` does to `live` at `now`.
pub(crate) fn decide(kind: &Kind, live: &Value, options: &DeleteOptions, now: Timestamp) -> Deletion {
    let grace = grace(kind, live, options);
    if let Grace::Pending = grace {
        return Deletion::Pending;
    }
    let mut object = live.clone();
    // The first delete of a definition only begins it; what is wished for dependents is for later ones.
    let finalizers = match live.is_deleting() || !strategy::only_begins(kind) {
        true => finalizers(kind, live, options),
        false => live.finalizers().into_iter().map(str::to_owned).collect(),
    };
    let finalizers_change = finalizers != live.finalizers();
    object.set_finalizers(finalizers);
    if !live.is_deleting() {
        strategy::prepare_delete(kind, &mut object, now);
    }
    let waits = !object.finalizers().is_empty() || !strategy::may_go(kind, &object);
    match grace {
        Grace::Seconds(seconds) if seconds > 0 => {
            mark(kind, &mut object, live, Grant { seconds, now, dry_run: options.dry_run });
            Deletion::Mark(object)
        }
        Grace::Seconds(_) if !waits => {
            mark(kind, &mut object, live, Grant { seconds: 0, now, dry_run: options.dry_run });
            Deletion::MarkAndRemove(object)
        }
        _ if !waits => Deletion::Remove,
        _ => {
            mark(kind, &mut object, live, Grant { seconds: 0, now, dry_run: options.dry_run });
            if object == *live && !finalizers_change { Deletion::Pending } else { Deletion::Mark(object) }
        }
    }
}

/// How long the object may take.
enum Grace {
    /// The kind knows no grace.
    None,
    /// So many seconds from now.
    Seconds(i64),
    /// It has been told already, and not longer than now.
    Pending,
}

fn grace(kind: &Kind, live: &Value, options: &DeleteOptions) -> Grace {
    let Some(wanted) = strategy::grace_seconds(kind, live, options.grace_seconds) else { return Grace::None };
    if !live.is_deleting() {
        return Grace::Seconds(wanted);
    }
    match (live.meta_integer("deletionGracePeriodSeconds").unwrap_or(0), options.grace_seconds) {
        (0, _) => Grace::None,
        (_, None) => Grace::Pending,
        // Grace may only be shortened.
        (left, Some(asked)) if asked.max(0) >= left => Grace::Pending,
        (_, Some(asked)) => Grace::Seconds(if asked < 0 { 1 } else { asked }),
    }
}

/// The time that a deletion grants.
struct Grant {
    seconds: i64,
    now: Timestamp,
    dry_run: bool,
}

fn mark(kind: &Kind, object: &mut Value, live: &Value, grant: Grant) {
    if !live.is_deleting() && live.generation() > 0 && !strategy::only_begins(kind) {
        object.set_meta("generation", live.generation() + 1);
    }
    object.set_meta("deletionTimestamp", deletion_time(live, grant.seconds, grant.now));
    // A definition that is deleted for nothing is marked as any object that somebody holds.
    let is_held = !live.finalizers().is_empty();
    if strategy::tells_grace(kind) || (grant.dry_run && is_held && strategy::only_begins(kind)) {
        object.set_meta("deletionGracePeriodSeconds", grant.seconds);
    }
}

/// The first delete begins the time; later ones only shorten it.
fn deletion_time(live: &Value, grace_seconds: i64, now: Timestamp) -> String {
    let Ok(until) = live.meta("deletionTimestamp").parse::<Timestamp>() else {
        return timestamp(now + SignedDuration::from_secs(grace_seconds));
    };
    let told = live.meta_integer("deletionGracePeriodSeconds").unwrap_or(0);
    let shortened = until - SignedDuration::from_secs(told) + SignedDuration::from_secs(grace_seconds);
    timestamp(shortened.max(now).min(until))
}

/// The finalizers after the wish for dependents is written into them.
fn finalizers(kind: &Kind, live: &Value, options: &DeleteOptions) -> Vec<String> {
    let current = live.finalizers();
    let rules = strategy::rules(kind);
    let propagation = options.propagation.or_else(|| {
        let by_finalizer = current.iter().find_map(|name| match *name {
            ORPHAN => Some(Propagation::Orphan),
            FOREGROUND => Some(Propagation::Foreground),
            _ => None,
        });
        by_finalizer.or(rules.orphans_by_default.then_some(Propagation::Orphan))
    });
    let wish = match propagation.filter(|_| rules.has_dependents) {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) | None => None,
    };
    let wishes = || current.iter().copied().filter(|name| [ORPHAN, FOREGROUND].contains(name));
    // What says the same already keeps its order.
    if wishes().eq(wish) {
        return current.iter().copied().map(str::to_owned).collect();
    }
    let own = current.iter().copied().filter(|name| ![ORPHAN, FOREGROUND].contains(name));
    own.chain(wish).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::builtin;

    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn check(plural: &str, live: Value, options: DeleteOptions, expect: Deletion) {
        let kinds = builtin();
        let kind = kinds.find("", "v1", plural).or_else(|| kinds.find("batch", "v1", plural)).unwrap();
        assert_eq!(decide(kind, &live, &options, NOW.parse().unwrap()), expect);
    }

    fn grace(seconds: i64) -> DeleteOptions {
        DeleteOptions { grace_seconds: Some(seconds), ..DeleteOptions::default() }
    }

    fn propagate(propagation: Propagation) -> DeleteOptions {
        DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() }
    }

    #[test]
    fn an_object_without_finalizers_goes() {
        check("configmaps", json!({"metadata": {}}), DeleteOptions::default(), Deletion::Remove);
        check("configmaps", json!({"metadata": {}}), grace(30), Deletion::Remove);
    }

    #[test]
    fn finalizers_hold_an_object() {
        let live = json!({"metadata": {"finalizers": ["a/b"], "generation": 3}});
        let marked = json!({"metadata": {"finalizers": ["a/b"], "generation": 4,
            "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}});
        check("configmaps", live, DeleteOptions::default(), Deletion::Mark(marked.clone()));
        check("configmaps", marked, DeleteOptions::default(), Deletion::Pending);
    }

    #[test]
    fn dependents_are_a_matter_of_finalizers() {
        let marked = |name: &str| {
            let metadata = json!({"finalizers": [name], "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0});
            Deletion::Mark(json!({ "metadata": metadata }))
        };
        check("configmaps", json!({"metadata": {}}), propagate(Propagation::Foreground), marked(FOREGROUND));
        check("configmaps", json!({"metadata": {}}), propagate(Propagation::Orphan), marked(ORPHAN));
        check("jobs", json!({"metadata": {}}), DeleteOptions::default(), marked(ORPHAN));
        check("jobs", json!({"metadata": {}}), propagate(Propagation::Background), Deletion::Remove);
        check("events", json!({"metadata": {}}), propagate(Propagation::Foreground), Deletion::Remove);
        check("events", json!({"metadata": {"finalizers": [ORPHAN]}}), DeleteOptions::default(), Deletion::Remove);
        let ordered = json!({"finalizers": [ORPHAN, "a/b"], "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0});
        let live = json!({"metadata": {"finalizers": [ORPHAN, "a/b"]}});
        check("configmaps", live, propagate(Propagation::Orphan), Deletion::Mark(json!({ "metadata": ordered })));
    }

    #[test]
    fn the_first_delete_of_a_definition_only_begins_it() {
        let kind = builtin().find("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap();
        let live = json!({"metadata": {"generation": 1}, "status": {}});
        let decided = decide(kind, &live, &propagate(Propagation::Foreground), NOW.parse().unwrap());
        let Deletion::Mark(marked) = decided else { panic!("{decided:?}") };
        assert_eq!(marked.generation(), 1);
        assert_eq!(marked.finalizers(), ["customresourcecleanup.apiextensions.k8s.io"]);
    }

    #[test]
    fn a_running_pod_gets_its_grace_and_less_on_a_second_try() {
        let pod =
            json!({"metadata": {"generation": 1}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
        let marked = |until: &str, seconds: i64| {
            let mut pod = pod.clone();
            pod["metadata"] =
                json!({"generation": 2, "deletionTimestamp": until, "deletionGracePeriodSeconds": seconds});
            pod
        };
        let first = marked("2026-01-01T00:00:30Z", 30);
        check("pods", pod.clone(), DeleteOptions::default(), Deletion::Mark(first.clone()));
        check("pods", first.clone(), DeleteOptions::default(), Deletion::Pending);
        check("pods", first.clone(), grace(60), Deletion::Pending);
        check("pods", first.clone(), grace(5), Deletion::Mark(marked("2026-01-01T00:00:05Z", 5)));
        check("pods", first, grace(0), Deletion::MarkAndRemove(marked(NOW, 0)));
        let told = json!({"metadata": {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}, "spec": {}});
        let unscheduled = json!({"metadata": {}, "spec": {}});
        check("pods", unscheduled, DeleteOptions::default(), Deletion::MarkAndRemove(told.clone()));
        check("pods", told, DeleteOptions::default(), Deletion::Remove);
    }

    #[test]
    fn a_namespace_waits_for_its_content() {
        let live = json!({"metadata": {}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let marked = json!({"metadata": {"deletionTimestamp": NOW},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}});
        check("namespaces", live, DeleteOptions::default(), Deletion::Mark(marked.clone()));
        check("namespaces", marked, DeleteOptions::default(), Deletion::Pending);
        check("namespaces", json!({"metadata": {}, "spec": {}}), DeleteOptions::default(), Deletion::Remove);
    }
}
