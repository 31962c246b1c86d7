//! Holds a history against what linearizable means.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::history::{Action, History, Operation, Outcome, Version};

/// What a history shows that must not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// One revision is two states.
    #[error("revision {revision} of {key} is {one:?} and {other:?}")]
    TwoStates {
        /// The object.
        key: String,
        /// The revision.
        revision: u64,
        /// What it is to one client.
        one: String,
        /// What it is to another.
        other: String,
    },
    /// A value that nobody wrote.
    #[error("{key} held {value:?}, which nobody wrote")]
    Invented {
        /// The object.
        key: String,
        /// The value.
        value: String,
    },
    /// What was read is older than what was known before the read began.
    #[error("{operation:?} tells of revision {found}, after {known} was known")]
    Stale {
        /// The read or write.
        operation: Box<Operation>,
        /// Its revision.
        found: u64,
        /// What was acknowledged or read before it began.
        known: u64,
    },
    /// What was read was written after the read was answered.
    #[error("{operation:?} tells of what was written later")]
    FromTheFuture {
        /// The read.
        operation: Box<Operation>,
    },
    /// An update was accepted on top of a state that was not the last.
    #[error("{operation:?} overwrote revision {lost}")]
    LostUpdate {
        /// The write.
        operation: Box<Operation>,
        /// What it had not seen.
        lost: u64,
    },
    /// A list shows a state that never was.
    #[error("a list at {revision} shows {key} as {shown:?}, but it was {was:?}")]
    MixedList {
        /// The revision of the list.
        revision: u64,
        /// The object.
        key: String,
        /// What the list shows.
        shown: Option<Version>,
        /// What was there at that revision.
        was: Option<Version>,
    },
    /// A read finds nothing though nothing was deleted.
    #[error("{operation:?} found nothing of what was there at {known} and never deleted")]
    Vanished {
        /// The read.
        operation: Box<Operation>,
        /// What was known.
        known: u64,
    },
}

/// What is known of an object.
#[derive(Default)]
struct States {
    /// Every state that anybody has seen, by revision.
    seen: BTreeMap<u64, String>,
    /// The revisions after which somebody deleted it, or may have. It is gone at some later revision.
    ended: BTreeSet<u64>,
}

/// What is known of all objects.
type Log = HashMap<String, States>;

/// Checks a history.
///
/// # Errors
/// The first thing that must not be.
pub fn check(history: &History) -> Result<(), Violation> {
    let operations = history.operations();
    let log = collect(&operations)?;
    let begun = beginnings(&operations);
    invented(&log, &begun)?;
    operations.iter().try_for_each(|operation| lost_update(operation, &log))?;
    operations.iter().try_for_each(|operation| future(operation, &begun))?;
    operations.iter().try_for_each(|operation| mixed(operation, &log))?;
    in_time(&operations, &log)
}

/// All states that the answers tell of.
fn collect(operations: &[Operation]) -> Result<Log, Violation> {
    let mut log = Log::new();
    for operation in operations {
        for (key, Version { revision, value }) in versions(operation) {
            let seen = &mut log.entry(key.clone()).or_default().seen;
            let known = seen.entry(revision).or_insert_with(|| value.clone());
            if *known != value {
                return Err(Violation::TwoStates { key, revision, one: known.clone(), other: value });
            }
        }
        if let Some((key, revision)) = deletion(operation) {
            log.entry(key).or_default().ended.insert(revision);
        }
    }
    Ok(log)
}

/// What was deleted, or may have been.
fn deletion(operation: &Operation) -> Option<(String, u64)> {
    let Action::Write { key, value: None, expected } = &operation.action else { return None };
    matches!(operation.outcome, Outcome::Deleted | Outcome::Unknown).then_some((key.clone(), (*expected)?))
}

fn versions(operation: &Operation) -> Vec<(String, Version)> {
    match (&operation.action, &operation.outcome) {
        (Action::Write { key, .. }, Outcome::Written(version))
        | (Action::Get { key }, Outcome::Found(Some(version))) => vec![(key.clone(), version.clone())],
        (Action::List, Outcome::Listed(_, all)) => all.iter().map(|(key, one)| (key.clone(), one.clone())).collect(),
        _ => Vec::new(),
    }
}

/// When each value was begun to be written.
fn beginnings(operations: &[Operation]) -> HashMap<(String, String), u64> {
    let written = operations.iter().filter_map(|operation| match &operation.action {
        Action::Write { key, value: Some(value), .. } => Some(((key.clone(), value.clone()), operation.begun)),
        _ => None,
    });
    written.collect()
}

fn invented(log: &Log, begun: &HashMap<(String, String), u64>) -> Result<(), Violation> {
    for (key, states) in log {
        for value in states.seen.values() {
            if !begun.contains_key(&(key.clone(), value.clone())) {
                return Err(Violation::Invented { key: key.clone(), value: value.clone() });
            }
        }
    }
    Ok(())
}

/// Between what a write expected and the write itself there is nothing.
fn lost_update(operation: &Operation, log: &Log) -> Result<(), Violation> {
    let (Action::Write { key, expected, .. }, Outcome::Written(written)) = (&operation.action, &operation.outcome)
    else {
        return Ok(());
    };
    let Some(states) = log.get(key) else { return Ok(()) };
    let before = states.seen.range(..written.revision).next_back().map(|(revision, _)| *revision);
    let lost = before.filter(|revision| match expected {
        Some(expected) => revision > expected,
        None => !states.ended.contains(revision),
    });
    lost.map_or(Ok(()), |lost| Err(Violation::LostUpdate { operation: Box::new(operation.clone()), lost }))
}

fn future(operation: &Operation, begun: &HashMap<(String, String), u64>) -> Result<(), Violation> {
    let is_read = !matches!(operation.action, Action::Write { .. });
    let later = versions(operation).into_iter().any(|(key, version)| {
        let began = begun.get(&(key, version.value)).copied();
        began.is_some_and(|began| began > operation.answered)
    });
    if is_read && later { Err(Violation::FromTheFuture { operation: Box::new(operation.clone()) }) } else { Ok(()) }
}

/// A list shows each object as it was at the revision of the list.
fn mixed(operation: &Operation, log: &Log) -> Result<(), Violation> {
    let Outcome::Listed(revision, all) = &operation.outcome else { return Ok(()) };
    for (key, states) in log {
        let last = states.seen.range(..=*revision).next_back();
        let was = last.map(|(revision, value)| Version { revision: *revision, value: value.clone() });
        let shown = all.get(key).cloned();
        let may_be_gone = was.as_ref().is_some_and(|version| states.ended.contains(&version.revision));
        if shown != was && !(shown.is_none() && may_be_gone) {
            let key = key.clone();
            return Err(Violation::MixedList { revision: *revision, key, shown, was });
        }
    }
    Ok(())
}

/// Whatever is answered is no older than what was known when it was begun.
fn in_time(operations: &[Operation], log: &Log) -> Result<(), Violation> {
    let mut moments: Vec<(u64, &Operation, bool)> = Vec::with_capacity(operations.len() * 2);
    for operation in operations {
        moments.push((operation.begun, operation, true));
        moments.push((operation.answered, operation, false));
    }
    moments.sort_by_key(|(time, ..)| *time);
    let mut known: HashMap<String, u64> = HashMap::new();
    let mut newest = 0;
    // What was known when each operation began: of everything, and of its own object.
    let mut floors: HashMap<u64, (u64, u64)> = HashMap::new();
    for (_, operation, begins) in moments {
        let key = match &operation.action {
            Action::Write { key, .. } | Action::Get { key } => key.as_str(),
            Action::List => "",
        };
        if begins {
            floors.insert(operation.begun, (newest, known.get(key).copied().unwrap_or(0)));
            continue;
        }
        let (of_all, of_key) = floors.remove(&operation.begun).unwrap_or_default();
        judge(operation, (of_all, of_key), log)?;
        if let Outcome::Listed(revision, _) = operation.outcome {
            newest = newest.max(revision);
        }
        // A deletion takes a revision of its own: nothing up to the next one is there any more.
        let gone = deletion(operation).filter(|_| operation.outcome == Outcome::Deleted);
        if let Some((key, revision)) = gone {
            let last = known.entry(key).or_default();
            *last = (*last).max(revision + 1);
        }
        for (key, version) in versions(operation) {
            newest = newest.max(version.revision);
            let last = known.entry(key).or_default();
            *last = (*last).max(version.revision);
        }
    }
    Ok(())
}

fn judge(operation: &Operation, (of_all, of_key): (u64, u64), log: &Log) -> Result<(), Violation> {
    let stale = |found: u64, known: u64| Violation::Stale { operation: Box::new(operation.clone()), found, known };
    match (&operation.action, &operation.outcome) {
        // A write is newer than everything that was known when it began.
        (_, Outcome::Written(version)) if version.revision <= of_all => Err(stale(version.revision, of_all)),
        (_, Outcome::Listed(revision, _)) if *revision < of_all => Err(stale(*revision, of_all)),
        (_, Outcome::Found(Some(version))) if version.revision < of_key => Err(stale(version.revision, of_key)),
        (Action::Get { key }, Outcome::Found(None)) if of_key > 0 => {
            let deleted =
                log.get(key).is_some_and(|states| states.ended.range(of_key.saturating_sub(1)..).next().is_some());
            let operation = Box::new(operation.clone());
            if deleted { Ok(()) } else { Err(Violation::Vanished { operation, known: of_key }) }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(revision: u64, value: &str) -> Version {
        Version { revision, value: value.to_owned() }
    }

    fn write(times: (u64, u64), expected: Option<u64>, revision: u64, value: &str) -> Operation {
        let action = Action::Write { key: "k".into(), value: Some(value.into()), expected };
        Operation { begun: times.0, answered: times.1, action, outcome: Outcome::Written(version(revision, value)) }
    }

    fn get(times: (u64, u64), found: Option<Version>) -> Operation {
        let action = Action::Get { key: "k".into() };
        Operation { begun: times.0, answered: times.1, action, outcome: Outcome::Found(found) }
    }

    fn list(times: (u64, u64), revision: u64, found: Option<Version>) -> Operation {
        let all = found.into_iter().map(|found| ("k".to_owned(), found)).collect();
        Operation { begun: times.0, answered: times.1, action: Action::List, outcome: Outcome::Listed(revision, all) }
    }

    /// Two writes one after the other, and something else.
    fn after(more: Vec<Operation>) -> Result<(), Violation> {
        let mut all = vec![write((0, 1), None, 5, "a"), write((2, 3), Some(5), 6, "b")];
        all.extend(more);
        check(&History::of(all))
    }

    #[test]
    fn what_is_in_order_passes() {
        assert_eq!(after(vec![get((4, 5), Some(version(6, "b"))), list((6, 7), 9, Some(version(6, "b")))]), Ok(()));
        assert_eq!(after(vec![get((1, 9), Some(version(5, "a")))]), Ok(()), "a read that overlaps may see either");
    }

    #[test]
    fn deletions_are_believed_and_held_to() {
        let action = Action::Write { key: "k".into(), value: None, expected: Some(6) };
        let delete = |outcome| Operation { begun: 4, answered: 5, action: action.clone(), outcome };
        assert_eq!(after(vec![delete(Outcome::Deleted), get((6, 7), None), list((6, 7), 9, None)]), Ok(()));
        assert_eq!(after(vec![delete(Outcome::Unknown), get((6, 7), Some(version(6, "b")))]), Ok(()));
        assert_eq!(after(vec![delete(Outcome::Deleted), write((6, 7), None, 8, "c")]), Ok(()));
        let risen = after(vec![delete(Outcome::Deleted), get((6, 7), Some(version(6, "b")))]);
        assert!(matches!(risen, Err(Violation::Stale { .. })));
    }

    #[test]
    fn what_is_not_is_found() {
        assert!(matches!(after(vec![get((4, 5), Some(version(5, "a")))]), Err(Violation::Stale { .. })));
        assert!(matches!(after(vec![list((4, 5), 5, Some(version(5, "a")))]), Err(Violation::Stale { .. })));
        assert!(matches!(after(vec![get((4, 5), Some(version(7, "c")))]), Err(Violation::Invented { .. })));
        assert!(matches!(after(vec![get((4, 5), Some(version(6, "c")))]), Err(Violation::TwoStates { .. })));
        assert!(matches!(after(vec![get((4, 5), None)]), Err(Violation::Vanished { .. })));
        assert!(matches!(after(vec![list((4, 5), 7, Some(version(5, "a")))]), Err(Violation::MixedList { .. })));
        assert!(matches!(after(vec![list((4, 5), 7, None)]), Err(Violation::MixedList { .. })));
        assert!(matches!(after(vec![write((4, 5), Some(5), 7, "c")]), Err(Violation::LostUpdate { .. })));
        let mut back = write((4, 5), None, 4, "c");
        back.action = Action::Write { key: "other".into(), value: Some("c".into()), expected: None };
        assert!(matches!(after(vec![back]), Err(Violation::Stale { .. })), "a revision goes back");
        let early = vec![get((4, 5), Some(version(7, "c"))), write((8, 9), Some(6), 7, "c")];
        assert!(matches!(after(early), Err(Violation::FromTheFuture { .. })));
    }

    #[test]
    fn many_operations_are_checked_by_their_order() {
        // A chain of writes to a hundred objects, each read once.
        let mut all = Vec::new();
        for index in 0..50_000_u64 {
            let (key, time, revision) = (format!("k{}", index % 100), index * 4, index + 10);
            let value = format!("v{index}");
            let expected = (index >= 100).then(|| revision - 100);
            let action = Action::Write { key: key.clone(), value: Some(value.clone()), expected };
            let outcome = Outcome::Written(version(revision, &value));
            all.push(Operation { begun: time, answered: time + 1, action, outcome });
            let outcome = Outcome::Found(Some(version(revision, &value)));
            all.push(Operation { begun: time + 2, answered: time + 3, action: Action::Get { key }, outcome });
        }
        assert_eq!(check(&History::of(all)), Ok(()));
    }
}
