//! What is well and what is not, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Checks that readiness asks, and those that life depends on; clones are the same register.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Register>>);

#[derive(Default)]
struct Register {
    /// What is wrong, by name and by holder: several may have the same name, and each speaks for itself.
    checks: BTreeMap<String, BTreeMap<u64, Option<String>>>,
    /// What the process cannot recover from by itself.
    vital: Vec<(String, Vital)>,
    sequence: u64,
}

/// Says what is wrong, if something is.
type Vital = Arc<dyn Fn() -> Option<String> + Send + Sync>;

impl std::fmt::Debug for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Register").field("checks", &self.checks).finish_non_exhaustive()
    }
}

/// A check in the register; it leaves when dropped.
#[derive(Debug)]
pub struct Check {
    health: Health,
    name: String,
    holder: u64,
}

impl Health {
    /// Adds a check that fails with `trouble` until [`Check::well`].
    pub fn check(&self, name: impl Into<String>, trouble: impl Into<String>) -> Check {
        let name = name.into();
        let mut register = self.lock();
        register.sequence += 1;
        let holder = register.sequence;
        register.checks.entry(name.clone()).or_default().insert(holder, Some(trouble.into()));
        Check { health: self.clone(), name, holder }
    }

    /// Adds something that the process cannot recover from by itself: `find` says what is wrong, if something is.
    pub fn vital(&self, name: impl Into<String>, find: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.lock().vital.push((name.into(), Arc::new(find)));
    }

    /// Whether all is well.
    pub fn is_ready(&self) -> bool {
        self.lock().checks.values().flat_map(BTreeMap::values).all(Option::is_none)
    }

    /// All checks with what is wrong, `None` if nothing is.
    pub fn report(&self) -> Vec<(String, Option<String>)> {
        let register = self.lock();
        let first = |held: &BTreeMap<u64, Option<String>>| held.values().flatten().next().cloned();
        register.checks.iter().map(|(name, held)| (name.clone(), first(held))).collect()
    }

    /// What is wrong, each with the name of its check.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let named = |(name, trouble): (String, Option<String>)| Some(format!("{name}: {}", trouble?));
        self.report().into_iter().filter_map(named).collect()
    }

    /// What life depends on, with what is wrong.
    pub fn vital_report(&self) -> Vec<(String, Option<String>)> {
        // Not under the lock: what is asked may take locks of its own.
        let vital = self.lock().vital.clone();
        vital.into_iter().map(|(name, find)| (name, find())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
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
        if let Some(held) = self.health.lock().checks.get_mut(&self.name) {
            held.insert(self.holder, trouble);
        }
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let mut register = self.health.lock();
        if let Some(held) = register.checks.get_mut(&self.name) {
            held.remove(&self.holder);
            if held.is_empty() {
                register.checks.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_with_the_same_name_one_that_is_well_does_not_speak_for_the_other() {
        let health = Health::default();
        let (first, second) = (health.check("watch pods", "refused"), health.check("watch pods", "has not listed yet"));
        second.well();
        assert!(!health.is_ready());
        assert_eq!(health.report(), [("watch pods".to_owned(), Some("refused".to_owned()))]);
        drop(first);
        assert!(health.is_ready());
        drop(second);
        assert_eq!(health.report(), []);
    }
}
