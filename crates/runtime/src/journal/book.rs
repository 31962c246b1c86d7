//! The runs that are remembered, by object: a bounded number of objects, and of runs for each.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use super::page::{History, Question};
use super::present::Present;
use super::record::{Run, Subject};
use crate::packer::Packer;

/// How many runs of one object are remembered.
pub const RUNS_PER_OBJECT_MAX: usize = 10;
/// How many objects are remembered; beyond, the one that was looked at the longest ago is forgotten.
pub const OBJECTS_MAX: usize = 512;

/// The last runs of the objects of one manager; clones are the same.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<Book>>);

/// A run, in little room.
struct Kept {
    packed: Box<[u8]>,
    /// The same for runs that did nothing and came to the same end; `None` for one that did something.
    likeness: Option<u64>,
    repeated: u32,
}

#[derive(Default)]
struct Book {
    packer: Packer,
    shelf: Shelf,
}

#[derive(Default)]
struct Shelf {
    objects: HashMap<Arc<Subject>, Past>,
    /// The objects in the order in which they were last looked at.
    order: BTreeMap<u64, Arc<Subject>>,
    sequence: u64,
}

#[derive(Default)]
struct Past {
    /// Oldest first.
    runs: VecDeque<Kept>,
    running: Option<Arc<Present>>,
    /// When it was last looked at, in the order of all looks.
    touched: u64,
}

impl Runs {
    /// A run begins.
    pub(crate) fn begin(&self, subject: &Subject, run: Arc<Present>) {
        self.lock().shelf.touch(subject).running = Some(run);
    }

    /// A run has ended.
    pub(crate) fn end(&self, subject: &Subject, run: Run) {
        let mut book = self.lock();
        let book = &mut *book;
        let past = book.shelf.touch(subject);
        if past.running.as_ref().is_some_and(|running| running.id() == run.reconcile_id) {
            past.running = None;
        }
        past.enter(run, &book.packer);
    }

    /// The histories that are asked for, those looked at last first; at most `max`, and how many more there are.
    pub fn find(&self, question: &Question, max: usize) -> (Vec<History>, usize) {
        let book = self.lock();
        let mut found: Vec<_> = book.shelf.objects.iter().filter(|(subject, _)| question.fits(subject)).collect();
        found.sort_by_key(|(_, past)| std::cmp::Reverse(past.touched));
        let more = found.len().saturating_sub(max);
        found.truncate(max);
        let histories = found.into_iter().map(|(subject, past)| History {
            object: Subject::clone(subject),
            running: past.running.as_ref().map(|run| run.copy()),
            runs: past.runs.iter().rev().filter_map(|kept| kept.open(&book.packer)).collect(),
        });
        (histories.collect(), more)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

impl Shelf {
    fn touch(&mut self, subject: &Subject) -> &mut Past {
        self.sequence += 1;
        let known = self.objects.get_key_value(subject).map(|(key, past)| (key.clone(), past.touched));
        let key = match known {
            Some((key, touched)) => {
                self.order.remove(&touched);
                key
            }
            None => {
                if self.objects.len() >= OBJECTS_MAX {
                    self.forget_oldest();
                }
                Arc::new(subject.clone())
            }
        };
        self.order.insert(self.sequence, key.clone());
        let past = self.objects.entry(key).or_default();
        past.touched = self.sequence;
        past
    }

    /// Forgets the object that nobody works on and that was looked at the longest ago.
    fn forget_oldest(&mut self) {
        let is_idle = |key: &Arc<Subject>| self.objects.get(key).is_none_or(|past| past.running.is_none());
        let Some(at) = self.order.iter().find(|(_, key)| is_idle(key)).map(|(at, _)| *at) else { return };
        if let Some(key) = self.order.remove(&at) {
            self.objects.remove(&key);
        }
    }
}

impl Past {
    fn enter(&mut self, mut run: Run, packer: &Packer) {
        let likeness = run.likeness();
        if let Some(last) = self.runs.pop_back_if(|last| likeness.is_some() && last.likeness == likeness) {
            run.repeated = last.repeated.saturating_add(1);
        }
        if self.runs.len() == RUNS_PER_OBJECT_MAX {
            self.runs.pop_front();
        }
        let text = serde_json::to_vec(&run).expect("a run is JSON");
        self.runs.push_back(Kept { packed: packer.pack(&text).into(), likeness, repeated: run.repeated });
    }
}

impl Kept {
    fn open(&self, packer: &Packer) -> Option<Run> {
        serde_json::from_slice(&packer.unpack(&self.packed)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::record::{Made, Turn};
    use super::*;

    fn subject(number: usize) -> Subject {
        Subject { kind: "Cache".into(), name: format!("c{number}"), ..Subject::default() }
    }

    fn run(id: usize, calls: usize) -> Run {
        let mut run = Run::new(id.to_string(), "cache".into(), Timestamp::UNIX_EPOCH);
        run.turn = Turn::Settled;
        run.calls = vec![Made::default(); calls];
        run
    }

    fn ids(runs: &Runs, name: &str) -> Vec<(String, u32)> {
        let question = Question { name: Some(name.into()), ..Question::default() };
        let (found, _) = runs.find(&question, 1);
        found.first().map_or_else(Vec::new, |history| {
            history.runs.iter().map(|run| (run.reconcile_id.clone(), run.repeated)).collect()
        })
    }

    #[test]
    fn what_did_something_outlives_what_only_looked() {
        let runs = Runs::default();
        runs.end(&subject(0), run(0, 1));
        for id in 1..100 {
            runs.end(&subject(0), run(id, 0));
        }
        assert_eq!(ids(&runs, "c0"), [("99".to_owned(), 98), ("0".to_owned(), 0)]);
        for id in 100..200 {
            runs.end(&subject(0), run(id, 1));
        }
        let left = ids(&runs, "c0");
        assert_eq!((left.len(), left[0].0.as_str()), (RUNS_PER_OBJECT_MAX, "199"));
    }

    #[test]
    fn of_too_many_objects_the_one_that_rested_longest_is_forgotten() {
        let runs = Runs::default();
        for number in 0..OBJECTS_MAX {
            runs.end(&subject(number), run(number, 0));
        }
        runs.end(&subject(0), run(1000, 1));
        runs.end(&subject(OBJECTS_MAX), run(1001, 0));
        assert_eq!((ids(&runs, "c0").len(), ids(&runs, "c1").len()), (2, 0));
        let (found, more) = runs.find(&Question::default(), 20);
        assert_eq!((found.len(), more), (20, OBJECTS_MAX - 20));
        assert_eq!(found[0].object, subject(OBJECTS_MAX));
    }
}
