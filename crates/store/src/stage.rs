//! Deciding what a commit changes, before anything is written.

use std::sync::Arc;

use crate::{CommitError, Entry, Event, Expect, Revision, Snapshot, Write};

/// A commit that may happen: the state after it and the events that lead there.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) snapshot: Snapshot,
    pub(crate) events: Vec<Arc<Event>>,
}

/// Applies `writes` to `base`. No events means that there is nothing to do, and the revision stays.
pub(crate) fn stage(base: &Snapshot, writes: Vec<Write>) -> Result<Staged, CommitError> {
    let revision = base.revision.next();
    let mut staged = Staged { snapshot: base.clone(), events: Vec::with_capacity(writes.len()) };
    for write in writes {
        let previous = staged.snapshot.index.get(write.key.as_str()).cloned();
        check(&write, previous.as_ref())?;
        let key: Arc<str> = write.key.into();
        let entry = write.value.map(|value| Entry {
            created: previous.as_ref().map_or(revision, |entry| entry.created),
            modified: revision,
            value,
        });
        match &entry {
            Some(entry) => staged.snapshot.index.insert_mut(Arc::clone(&key), entry.clone()),
            None if previous.is_none() => continue,
            None => {
                staged.snapshot.index.remove_mut(&*key);
            }
        }
        staged.events.push(Arc::new(Event { revision, key, entry, previous }));
    }
    if !staged.events.is_empty() {
        staged.snapshot.revision = revision;
    }
    Ok(staged)
}

fn check(write: &Write, previous: Option<&Entry>) -> Result<(), CommitError> {
    let actual: Option<Revision> = previous.map(|entry| entry.modified);
    let as_expected = match write.expect {
        Expect::Any => true,
        Expect::Absent => actual.is_none(),
        Expect::Revision(revision) => actual == Some(revision),
    };
    if as_expected { Ok(()) } else { Err(CommitError::Precondition { key: write.key.clone(), actual }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, expect: Expect, value: &'static str) -> Write {
        Write { key: key.into(), expect, value: Some(value.into()) }
    }

    #[test]
    fn a_commit_is_all_or_nothing() {
        let base = stage(&Snapshot::empty(), vec![put("a", Expect::Absent, "1")]).unwrap().snapshot;
        let refused = stage(&base, vec![put("b", Expect::Absent, "2"), put("a", Expect::Absent, "3")]).unwrap_err();
        assert!(matches!(refused, CommitError::Precondition { ref key, actual: Some(Revision(2)) } if key == "a"));
        assert!(base.get("b").is_none());
    }

    #[test]
    fn an_update_keeps_when_the_key_was_created() {
        let base = stage(&Snapshot::empty(), vec![put("a", Expect::Absent, "1")]).unwrap().snapshot;
        let next = stage(&base, vec![put("a", Expect::Revision(Revision(2)), "2")]).unwrap();
        let entry = next.snapshot.get("a").unwrap();
        assert_eq!((entry.created, entry.modified), (Revision(2), Revision(3)));
        assert_eq!(next.events[0].previous.as_ref().unwrap().value, "1");
    }

    #[test]
    fn removing_what_is_not_there_changes_nothing() {
        let staged =
            stage(&Snapshot::empty(), vec![Write { key: "a".into(), expect: Expect::Any, value: None }]).unwrap();
        assert!(staged.events.is_empty());
        assert_eq!(staged.snapshot.revision(), Revision::FIRST);
    }
}
