//! What a store is, in the simplest words: a list of commits.

use std::collections::BTreeMap;

use crate::{Entry, Event, Expect, Revision, Write};

/// The state of all keys.
pub(super) type Contents = BTreeMap<String, Entry>;

/// A store as a list of commits.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// Every event since the beginning; those of one commit have one revision.
    pub(super) log: Vec<Event>,
    pub(super) revision: Revision,
    /// The oldest revision from which the past is certain to be known.
    pub(super) compacted: Revision,
    /// What was refused by the disk last, which a start after a loss of power may find.
    pub(super) open: Option<Vec<Write>>,
}

impl Reference {
    pub(super) fn new() -> Self {
        Self { log: Vec::new(), revision: Revision::FIRST, compacted: Revision::FIRST, open: None }
    }

    /// What all keys hold at a revision.
    pub(super) fn at(&self, revision: Revision) -> Contents {
        let mut contents = Contents::new();
        for event in self.log.iter().take_while(|event| event.revision <= revision) {
            match &event.entry {
                Some(entry) => contents.insert(event.key.to_string(), entry.clone()),
                None => contents.remove(&*event.key),
            };
        }
        contents
    }

    /// What all keys hold.
    pub(super) fn now(&self) -> Contents {
        self.at(self.revision)
    }

    /// What a commit would make; `None` if a key is not as expected.
    pub(super) fn staged(&self, writes: &[Write]) -> Option<Vec<Event>> {
        let (mut contents, next) = (self.now(), Revision(self.revision.0 + 1));
        let mut events = Vec::new();
        for write in writes {
            let previous = contents.get(&write.key).cloned();
            let is_expected = match write.expect {
                Expect::Any => true,
                Expect::Absent => previous.is_none(),
                Expect::Revision(revision) => previous.as_ref().is_some_and(|entry| entry.modified == revision),
            };
            if !is_expected {
                return None;
            }
            let created = previous.as_ref().map_or(next, |entry| entry.created);
            let entry = write.value.clone().map(|value| Entry { created, modified: next, value });
            if entry.is_none() && previous.is_none() {
                continue;
            }
            match &entry {
                Some(entry) => contents.insert(write.key.clone(), entry.clone()),
                None => contents.remove(&write.key),
            };
            events.push(Event { revision: next, key: write.key.as_str().into(), entry, previous });
        }
        Some(events)
    }

    /// Takes a commit in.
    pub(super) fn take(&mut self, events: Vec<Event>) {
        if let Some(event) = events.first() {
            self.revision = event.revision;
        }
        self.log.extend(events);
    }

    /// The events of keys with a prefix after a revision.
    pub(super) fn after<'a>(&'a self, prefix: &'a str, after: Revision) -> impl Iterator<Item = &'a Event> {
        self.log.iter().filter(move |event| event.revision > after && event.key.starts_with(prefix))
    }
}
