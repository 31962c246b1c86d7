//! How functions of admission see the world: through a window, which opens when their operator is put to work.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use crate::world::World;

type Look = Arc<dyn Fn() -> World + Send + Sync>;

/// A window on the world; its clones are the same window.
#[derive(Clone, Default)]
pub struct Window(Arc<RwLock<Option<Look>>>);

impl Window {
    /// Opens it, or opens it on another world.
    pub fn open(&self, look: impl Fn() -> World + Send + Sync + 'static) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(look));
    }

    /// The world at this moment; none while it is closed.
    pub fn look(&self) -> Option<World> {
        let look = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        look.map(|look| look())
    }
}

impl Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Window").finish_non_exhaustive()
    }
}
