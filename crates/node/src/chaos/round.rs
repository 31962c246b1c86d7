//! One round of a `Chaos` on this node: who suffers, what was ordered, and what has become of it.

use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::board::Board;
use super::resource::{Victim, VictimState};
use crate::sandbox::{Cut, Faults};

/// How long a supervisor may take to answer an order; one whose container does not run cannot.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// How long a container that does not run may be on its way.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// One who suffers on this node.
#[derive(Debug)]
pub(super) struct Sufferer {
    /// The uid of the Pod and the container; none for a Service.
    pub(super) key: Option<(String, String)>,
    pub(super) victim: Victim,
    /// The order that is not answered yet, and since when.
    order: Option<(u64, Instant)>,
    /// What was ordered.
    faults: Faults,
    /// The first process of a container that is to be killed, and since when.
    doomed: Option<(i32, Instant)>,
}

/// One round on this node.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    /// In whose name orders are given: the uid of the resource.
    pub(super) owner: String,
    pub(super) until: Instant,
    pub(super) sufferers: Vec<Sufferer>,
    /// What they are cut off from.
    pub(super) cut: Option<Cut>,
}

impl Sufferer {
    /// One to whom it cannot be done, or a Service.
    pub(super) fn new(victim: Victim, key: Option<(String, String)>) -> Self {
        Self { key, victim, order: None, faults: Faults::default(), doomed: None }
    }
}

impl Round {
    /// Orders what a container is to suffer.
    pub(super) fn order(&mut self, board: &Board, mut sufferer: Sufferer, faults: Faults) {
        if let Some(key) = &sufferer.key {
            let number = board.order(key, &self.owner, faults.clone(), self.until);
            sufferer.order = Some((number, Instant::now()));
            sufferer.faults = faults;
        }
        self.sufferers.push(sufferer);
    }

    /// Orders the death of a container whose first process is `init`.
    pub(super) fn kill(&mut self, board: &Board, mut sufferer: Sufferer, init: i32) {
        sufferer.key.iter().for_each(|key| board.kill(key));
        sufferer.doomed = Some((init, Instant::now()));
        self.sufferers.push(sufferer);
    }

    /// Cuts off from others than before.
    pub(super) fn change_cut(&mut self, board: &Board, cut: Cut) {
        if self.cut.as_ref() == Some(&cut) {
            return;
        }
        for sufferer in self.sufferers.iter_mut().filter(|one| one.victim.state == VictimState::Suffering) {
            let Some(key) = &sufferer.key else { continue };
            sufferer.faults.cut = Some(cut.clone());
            board.order(key, &self.owner, sufferer.faults.clone(), self.until);
        }
        self.cut = Some(cut);
    }

    /// Takes in answers; true if something has changed.
    ///
    /// `runs` tells the first process of a container that runs.
    pub(super) fn look(&mut self, board: &Board, runs: impl Fn(&(String, String)) -> Option<i32>) -> bool {
        let mut changed = false;
        for sufferer in &mut self.sufferers {
            changed |= sufferer.see_death(&runs);
            let (Some((number, since)), Some(key)) = (sufferer.order, sufferer.key.clone()) else { continue };
            let key = &key;
            let is_gone = runs(key).is_none() && since.elapsed() > GONE_AFTER;
            let answer = match board.answer(key, number) {
                Some(answer) => answer,
                None if is_gone => Ok(()),
                None if since.elapsed() > ANSWER_LIMIT => Err("its supervisor does not answer".to_owned()),
                None => continue,
            };
            sufferer.order = None;
            changed = true;
            if sufferer.settle(answer, is_gone) {
                // What could be done of it is undone: half a fault is none.
                board.lift(key, &self.owner);
            }
        }
        changed
    }

    /// Ends what is ordered; `why` is told.
    pub(super) fn lift(&mut self, board: &Board, why: &str) {
        for sufferer in &mut self.sufferers {
            let state = sufferer.victim.state;
            if !state.is_open() || state == VictimState::Mending || sufferer.doomed.is_some() {
                continue;
            }
            why.clone_into(&mut sufferer.victim.message);
            match &sufferer.key {
                Some(key) => {
                    sufferer.order = Some((board.lift(key, &self.owner), Instant::now()));
                    sufferer.victim.state = VictimState::Mending;
                }
                None => sufferer.conclude(VictimState::Done),
            }
        }
    }

    /// Whether something may still be wrong.
    pub(super) fn is_open(&self) -> bool {
        self.sufferers.iter().any(|sufferer| sufferer.victim.state.is_open())
    }
}

impl Sufferer {
    /// Whether one that was killed has just been seen to have ended, or not to end.
    fn see_death(&mut self, runs: impl Fn(&(String, String)) -> Option<i32>) -> bool {
        let (Some((init, since)), Some(key)) = (self.doomed, &self.key) else { return false };
        if runs(key) != Some(init) {
            self.conclude(VictimState::Done);
        } else if since.elapsed() > ANSWER_LIMIT {
            "it did not end".clone_into(&mut self.victim.message);
            self.conclude(VictimState::Refused);
        } else {
            return false;
        }
        self.doomed = None;
        true
    }

    /// Takes in an answer; true if what was ordered has to be lifted.
    fn settle(&mut self, answer: Result<(), String>, is_gone: bool) -> bool {
        let refused = self.victim.state == VictimState::Ordered && answer.is_err();
        match (self.victim.state, answer) {
            (VictimState::Ordered, Ok(())) if is_gone => {
                "it had ended before".clone_into(&mut self.victim.message);
                self.conclude(VictimState::Refused);
            }
            (VictimState::Ordered, Ok(())) => self.victim.state = VictimState::Suffering,
            (VictimState::Ordered, Err(problem)) => {
                self.victim.message = problem;
                self.conclude(VictimState::Refused);
            }
            (VictimState::Mending, Ok(())) => self.conclude(VictimState::Done),
            (VictimState::Mending, Err(problem)) => {
                self.victim.message = format!("{problem}; its supervisor undoes it when its time is over");
                self.conclude(VictimState::Done);
            }
            _ => {}
        }
        refused
    }

    fn conclude(&mut self, state: VictimState) {
        self.victim.state = state;
        self.victim.ended = Some(Time(Timestamp::now()));
    }
}
