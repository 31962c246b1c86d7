//! Whether the controllers of a manager have something to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the controllers of one manager are doing; clones look at the same ones.
#[derive(Clone, Default)]
pub struct Activity(Arc<Mutex<Vec<Watched>>>);

struct Watched {
    begun: Arc<AtomicBool>,
    is_idle: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Activity {
    /// Looks at one more controller; `begun` is set when it has read all that it watches.
    pub(crate) fn add(&self, begun: Arc<AtomicBool>, is_idle: impl Fn() -> bool + Send + Sync + 'static) {
        self.lock().push(Watched { begun, is_idle: Box::new(is_idle) });
    }

    /// Whether every controller has read what it watches and works.
    pub fn has_begun(&self) -> bool {
        self.lock().iter().all(|watched| watched.begun.load(Ordering::SeqCst))
    }

    /// Whether all have begun, nothing stands in line, and nothing is being worked on. What waits for its time does not count.
    pub fn is_quiet(&self) -> bool {
        self.has_begun() && self.lock().iter().all(|watched| (watched.is_idle)())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}
