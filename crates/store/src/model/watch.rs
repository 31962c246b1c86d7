//! What a watch promises, checked on what it delivered: the properties of etcd's robustness tests.

use std::collections::HashSet;

use super::reference::Reference;
use crate::{Event, Revision};

/// A promise of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Property {
    /// Only what was asked for.
    Filter,
    /// In the order of commits.
    Ordered,
    /// Nothing twice.
    Unique,
    /// A commit as a whole.
    Atomic,
    /// Nothing later that a bookmark says was delivered.
    Bookmarkable,
    /// From where it was begun, or begun again.
    Resumable,
    /// What was made is told from what was changed.
    IsCreate,
    /// Nothing left out.
    Reliable,
    /// What was there before.
    Previous,
}

/// What a watch was asked and what it delivered.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) prefix: &'static str,
    pub(super) after: Revision,
    pub(super) events: Vec<Event>,
    /// How far it said to be, and after how many events.
    pub(super) bookmarks: Vec<(usize, Revision)>,
}

impl Record {
    /// Where a watch goes on that takes this one's place.
    pub(super) fn position(&self) -> Revision {
        let marked = self.bookmarks.iter().map(|(_, revision)| *revision).max().unwrap_or(self.after);
        self.events.last().map_or(marked, |event| event.revision.max(marked))
    }
}

/// Looks for one broken promise.
type Check = fn(&Record, &Reference) -> Result<(), String>;

/// Holds a record against the log; the first promise that is broken, and how.
pub(super) fn check(record: &Record, log: &Reference) -> Result<(), (Property, String)> {
    let checks: [(Property, Check); 9] = [
        (Property::Filter, filter),
        (Property::Resumable, resumable),
        (Property::Unique, unique),
        (Property::Ordered, ordered),
        (Property::IsCreate, is_create),
        (Property::Previous, previous),
        (Property::Atomic, atomic),
        (Property::Bookmarkable, bookmarkable),
        (Property::Reliable, reliable),
    ];
    checks.into_iter().try_for_each(|(property, check)| check(record, log).map_err(|why| (property, why)))
}

fn filter(record: &Record, _: &Reference) -> Result<(), String> {
    let wrong = record.events.iter().find(|event| !event.key.starts_with(record.prefix));
    wrong.map_or(Ok(()), |event| Err(format!("{} was delivered to a watch of {}", event.key, record.prefix)))
}

fn resumable(record: &Record, log: &Reference) -> Result<(), String> {
    let (Some(first), expected) = (record.events.first(), log.after(record.prefix, record.after).next()) else {
        return Ok(());
    };
    if Some(first.revision) == expected.map(|event| event.revision) {
        return Ok(());
    }
    Err(format!("a watch after {} began with {first:?}, not with {expected:?}", record.after))
}

fn unique(record: &Record, _: &Reference) -> Result<(), String> {
    let mut seen = HashSet::new();
    // A commit may write a key twice: then the events differ.
    let again = record.events.iter().find(|event| !seen.insert((event.revision, &event.key, format!("{event:?}"))));
    again.map_or(Ok(()), |event| Err(format!("{event:?} was delivered twice")))
}

fn ordered(record: &Record, _: &Reference) -> Result<(), String> {
    let wrong = record.events.windows(2).find(|pair| pair[0].revision > pair[1].revision);
    wrong.map_or(Ok(()), |pair| Err(format!("{} came after {}", pair[1].revision, pair[0].revision)))
}

fn is_create(record: &Record, _: &Reference) -> Result<(), String> {
    let is_wrong = |event: &&Event| {
        let is_new =
            event.entry.as_ref().map(|entry| entry.created == event.revision && entry.modified == entry.created);
        is_new.is_some_and(|is_new| {
            let was_there = event.previous.as_ref().is_some_and(|entry| entry.created != event.revision);
            is_new == was_there
        })
    };
    record
        .events
        .iter()
        .find(is_wrong)
        .map_or(Ok(()), |event| Err(format!("{event:?} mistakes a change for a creation")))
}

fn previous(record: &Record, log: &Reference) -> Result<(), String> {
    let is_wrong = |event: &&Event| {
        let mut same = log.log.iter().filter(|known| known.revision == event.revision && known.key == event.key);
        !same.any(|known| known.previous == event.previous)
    };
    record.events.iter().find(is_wrong).map_or(Ok(()), |event| Err(format!("{event:?} was not what was there before")))
}

/// Before the next commit, and before the watch says that it has caught up, all of one is there.
fn atomic(record: &Record, log: &Reference) -> Result<(), String> {
    let Some(last) = record.events.last() else { return Ok(()) };
    let delivered = |revision| record.events.iter().filter(|event| event.revision == revision).count();
    let marked = record.bookmarks.iter().map(|(_, revision)| *revision).max().unwrap_or(Revision(0));
    let whole = |revision| log.after(record.prefix, record.after).filter(|event| event.revision == revision).count();
    let finished =
        record.events.iter().map(|event| event.revision).filter(|one| *one < last.revision || *one <= marked);
    let cut = finished.into_iter().find(|revision| delivered(*revision) != whole(*revision));
    cut.map_or(Ok(()), |revision| Err(format!("of commit {revision} only {} events came", delivered(revision))))
}

fn bookmarkable(record: &Record, _: &Reference) -> Result<(), String> {
    let late = record.bookmarks.iter().find_map(|(count, revision)| {
        record.events[*count..].iter().find(|event| event.revision <= *revision).map(|event| (revision, event))
    });
    late.map_or(Ok(()), |(revision, event)| Err(format!("{event:?} came after the bookmark {revision}")))
}

/// Everything up to where the watch is, and nothing else.
fn reliable(record: &Record, log: &Reference) -> Result<(), String> {
    let last = record.events.last().map(|event| event.revision);
    let marked = record.bookmarks.iter().map(|(_, revision)| *revision).max();
    let Some(end) = last.max(marked) else { return Ok(()) };
    let mut expected = log.after(record.prefix, record.after).filter(|event| event.revision <= end);
    for event in &record.events {
        let wanted = expected.next();
        if wanted != Some(event) {
            return Err(format!("{event:?} came instead of {wanted:?}"));
        }
    }
    let is_open = |event: &&Event| Some(event.revision) == last && Some(event.revision) > marked;
    match expected.next().filter(|event| !is_open(event)) {
        None => Ok(()),
        Some(missed) => Err(format!("{missed:?} never came")),
    }
}
