//! Plans, run on all threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::laboratory::{Lab, Outcome, Setup};
use super::plan::Plan;

/// Plans that threads take one after the other.
pub(crate) struct Work<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) plans: &'a [Plan],
    /// Runs one of them.
    pub(crate) run: &'a (dyn Fn(&Lab, &Plan) -> Outcome + Sync),
    /// Whether the first finding ends it.
    pub(crate) first_only: bool,
}

/// A plan that was run.
pub(crate) struct Done {
    /// Its number among the plans.
    pub(crate) number: usize,
    pub(crate) outcome: Outcome,
    /// How long the thread worked on it.
    pub(crate) busy: Duration,
}

impl Work<'_> {
    /// Runs all plans, the first thread in `lab`; in the order of the plans.
    pub(crate) fn on_all_threads(&self, threads: usize, lab: &Lab) -> Vec<Done> {
        let (results, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 1..threads.min(self.plans.len()) {
                scope.spawn(|| self.share(&Lab::new(self.setup), &next, &results));
            }
            self.share(lab, &next, &results);
        });
        let mut results = results.into_inner().expect("a thread that panicked has failed the test");
        results.sort_unstable_by_key(|done: &Done| done.number);
        results
    }

    fn share(&self, lab: &Lab, next: &AtomicUsize, results: &Mutex<Vec<Done>>) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = self.plans.get(number) else { return };
            let began = cpu();
            let mut outcome = (self.run)(lab, plan);
            outcome.states.clear();
            if outcome.violations.is_empty() {
                outcome.calls.clear();
            } else if self.first_only {
                next.store(self.plans.len(), Ordering::Relaxed);
            }
            let busy = cpu().saturating_sub(began);
            results.lock().expect("a thread that panicked has failed the test").push(Done { number, outcome, busy });
        }
    }
}

/// The time that this thread has worked.
fn cpu() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap_or_default()
}
