//! What a supervisor does to its container when the node orders faults: begins, repeats, undoes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::fault::Faults;
use super::processes;
use super::skew::Skew;
use crate::sys;

/// How often processes and sockets are looked for that were not there before.
const SWEEP_EVERY: Duration = Duration::from_millis(200);
/// How often the processes of a container are stopped that start new ones meanwhile.
const STOP_PASSES_MAX: usize = 50;

/// What a container suffers at the hands of its supervisor.
#[derive(Debug, Default)]
pub(crate) struct Harm {
    faults: Faults,
    until: Option<Instant>,
    sweep: Option<Instant>,
    /// Processes that were stopped.
    stopped: BTreeSet<i32>,
    skew: Option<Skew>,
}

impl Harm {
    /// What is ordered at the moment.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// How long nothing is to be done.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let next = [self.until, self.sweep].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }

    /// Whether new processes and sockets are to be looked for; then the next time is set.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.sweep.is_some_and(|sweep| sweep <= Instant::now());
        if due {
            self.sweep = Some(Instant::now() + SWEEP_EVERY);
        }
        due
    }

    /// Takes an order for `members`, the processes of a container, whose first one is `init`; one of runc's is the program
    /// itself.
    ///
    /// # Errors
    /// What of it cannot be done.
    pub(crate) fn take(
        &mut self,
        faults: Faults,
        members: impl Fn() -> Vec<i32>,
        (init, is_program): (i32, bool),
    ) -> Result<(), String> {
        let lasts = !faults.is_nothing();
        self.until = lasts.then(|| Instant::now() + faults.limit);
        // Pausing needs no repetition: what is stopped starts nothing.
        self.sweep = (lasts && (faults.cut.is_some() || faults.skew.is_some())).then(|| Instant::now() + SWEEP_EVERY);
        match faults.paused {
            true => self.stop(init, is_program),
            false => self.go_on(),
        }
        let skewed = self.set_clock(faults.skew, members);
        self.faults = faults;
        skewed
    }

    /// Makes the clocks of new processes wrong, too.
    ///
    /// # Errors
    /// Whose clock could not be changed.
    pub(crate) fn repeat(&self, members: &[i32]) -> Result<(), String> {
        self.skew.as_ref().map_or(Ok(()), |skew| skew.apply(members))
    }

    fn set_clock(&mut self, seconds: Option<i64>, members: impl Fn() -> Vec<i32>) -> Result<(), String> {
        let before = self.skew.take();
        match seconds {
            None => {
                before.into_iter().for_each(|skew| skew.mend(&members()));
                Ok(())
            }
            Some(seconds) => {
                let skew = Skew::prepare(seconds)?;
                let done = skew.apply(&members());
                self.skew = Some(skew);
                done
            }
        }
    }

    /// Stops what the container runs. Its own first process is Windlass's and goes on, to see to the rest.
    fn stop(&mut self, init: i32, is_program: bool) {
        for _ in 0..STOP_PASSES_MAX {
            let tree = processes::below(init).into_iter().chain(is_program.then_some(init));
            let new: Vec<i32> = tree.filter(|process| !self.stopped.contains(process)).collect();
            if new.is_empty() {
                return;
            }
            for process in new {
                sys::signal(process, libc::SIGSTOP);
                self.stopped.insert(process);
            }
        }
    }

    fn go_on(&mut self) {
        // Whoever was stopped has not ended, so its number is still its own, unless somebody killed it.
        for process in std::mem::take(&mut self.stopped) {
            sys::signal(process, libc::SIGCONT);
        }
    }
}
