//! The window of the recent past: events and snapshots, within limits.

use std::{collections::VecDeque, sync::Arc};

use crate::{Compacted, Event, Revision, Snapshot, stage::Staged};

/// How many events are kept.
pub(crate) const EVENTS_MAX: usize = 10_000;
/// How many bytes of values the kept events may hold.
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 20;
/// How many old states are kept.
pub(crate) const SNAPSHOTS_MAX: usize = 2_000;

/// What happened lately. Everything after `compacted` is here without a gap.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    event_bytes: usize,
    compacted: Revision,
    snapshots: VecDeque<Snapshot>,
}

impl History {
    pub(crate) fn starting_at(snapshot: Snapshot) -> Self {
        Self {
            events: VecDeque::new(),
            event_bytes: 0,
            compacted: snapshot.revision(),
            snapshots: VecDeque::from([snapshot]),
        }
    }

    /// Adds a commit and forgets what is over the limits.
    pub(crate) fn push(&mut self, staged: &Staged) {
        for event in &staged.events {
            self.event_bytes += size(event);
            self.events.push_back(Arc::clone(event));
        }
        self.snapshots.push_back(staged.snapshot.clone());
        while self.events.len() > EVENTS_MAX || self.event_bytes > EVENT_BYTES_MAX {
            let Some(oldest) = self.events.front().map(|event| event.revision) else { break };
            self.forget_events(oldest);
        }
        while self.snapshots.len() > SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
    }

    /// Forgets everything before the state at `revision`.
    pub(crate) fn compact(&mut self, revision: Revision) {
        self.forget_events(revision);
        while self.snapshots.get(1).is_some_and(|following| following.revision() <= revision) {
            self.snapshots.pop_front();
        }
    }

    /// The events after `after`.
    pub(crate) fn events_after(&self, after: Revision) -> Result<impl Iterator<Item = &Arc<Event>>, Compacted> {
        if after < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        let start = self.events.partition_point(|event| event.revision <= after);
        Ok(self.events.range(start..))
    }

    /// The state at `revision`.
    pub(crate) fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, Compacted> {
        let end = self.snapshots.partition_point(|snapshot| snapshot.revision() <= revision);
        match end.checked_sub(1) {
            Some(found) => Ok(self.snapshots[found].clone()),
            None => Err(Compacted { oldest: self.snapshots[0].revision() }),
        }
    }

    /// A commit is forgotten as a whole, so that a watch never begins in the middle of one.
    fn forget_events(&mut self, through: Revision) {
        while let Some(event) = self.events.pop_front_if(|event| event.revision <= through) {
            self.event_bytes -= size(&event);
            self.compacted = event.revision;
        }
        self.compacted = self.compacted.max(through.min(self.newest()));
    }

    fn newest(&self) -> Revision {
        self.snapshots.back().map_or(self.compacted, Snapshot::revision)
    }
}

fn size(event: &Event) -> usize {
    let value = event.entry.as_ref().or(event.previous.as_ref()).map_or(0, |entry| entry.value.len());
    value + event.key.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, Write, stage::stage};

    fn grow(history: &mut History, state: &mut Snapshot, commits: usize, bytes: usize) {
        for _ in 0..commits {
            let write = Write { key: "k".into(), expect: Expect::Any, value: Some(vec![0; bytes].into()) };
            let staged = stage(state, vec![write]).unwrap();
            history.push(&staged);
            *state = staged.snapshot;
        }
    }

    fn history(commits: usize, bytes: usize) -> (History, Snapshot) {
        let mut state = Snapshot::empty();
        let mut history = History::starting_at(state.clone());
        grow(&mut history, &mut state, commits, bytes);
        (history, state)
    }

    #[test]
    fn the_number_of_events_is_limited() {
        let (history, state) = history(EVENTS_MAX + 5, 1);
        assert_eq!(history.events.len(), EVENTS_MAX);
        assert_eq!(history.events_after(Revision(3)).err(), Some(Compacted { oldest: Revision(6) }));
        assert_eq!(history.events_after(Revision(6)).unwrap().count(), EVENTS_MAX);
        assert_eq!(history.events_after(state.revision()).unwrap().count(), 0);
    }

    #[test]
    fn the_bytes_of_events_are_limited() {
        let (history, _) = history(70, 1 << 20);
        assert!(history.event_bytes <= EVENT_BYTES_MAX);
        assert_eq!(history.events.len(), 63);
    }

    #[test]
    fn old_states_are_found_until_compacted() {
        let (mut history, state) = history(10, 1);
        assert_eq!(history.snapshot_at(Revision(4)).unwrap().revision(), Revision(4));
        history.compact(Revision(5));
        assert_eq!(history.snapshot_at(Revision(4)).err(), Some(Compacted { oldest: Revision(5) }));
        assert_eq!(history.snapshot_at(Revision(5)).unwrap().revision(), Revision(5));
        assert_eq!(history.events_after(Revision(4)).err(), Some(Compacted { oldest: Revision(5) }));
        assert_eq!(history.events_after(Revision(5)).unwrap().count(), 6);
        assert_eq!(history.snapshot_at(state.revision()).unwrap().revision(), state.revision());
    }

    #[test]
    fn compacting_the_present_keeps_it() {
        let (mut history, state) = history(3, 1);
        history.compact(Revision(100));
        assert_eq!(history.snapshot_at(state.revision()).unwrap().revision(), state.revision());
        assert_eq!(history.events_after(state.revision()).unwrap().count(), 0);
    }
}
