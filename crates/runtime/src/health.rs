//! What is well and what is not, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Checks that readiness asks; clones are the same register.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, Report>>>);

#[derive(Clone, Debug)]
struct Report {
    /// How many hold this check; shared watches have one name each.
    holders: usize,
    trouble: Option<String>,
}

/// A check in the register; it leaves when dropped.
#[derive(Debug)]
pub struct Check {
    health: Health,
    name: String,
}

impl Health {
    /// Adds a check that fails with `trouble` until [`Check::well`].
    pub fn check(&self, name: impl Into<String>, trouble: impl Into<String>) -> Check {
        let name = name.into();
        let report = Report { holders: 0, trouble: Some(trouble.into()) };
        self.lock().entry(name.clone()).or_insert(report).holders += 1;
        Check { health: self.clone(), name }
    }

    /// Whether all is well.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(|report| report.trouble.is_none())
    }

    /// All checks with what is wrong, `None` if nothing is.
    pub fn report(&self) -> Vec<(String, Option<String>)> {
        self.lock().iter().map(|(name, report)| (name.clone(), report.trouble.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Report>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

impl Check {
    /// Nothing is wrong.
    pub fn well(&self) {
        self.set(None);
    }

    /// Something is wrong.
    pub fn trouble(&self, what: impl Into<String>) {
        self.set(Some(what.into()));
    }

    fn set(&self, trouble: Option<String>) {
        if let Some(report) = self.health.lock().get_mut(&self.name) {
            report.trouble = trouble;
        }
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let mut reports = self.health.lock();
        if let Some(report) = reports.get_mut(&self.name) {
            report.holders -= 1;
            if report.holders == 0 {
                reports.remove(&self.name);
            }
        }
    }
}
