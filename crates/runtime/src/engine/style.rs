//! The ways to write an operator, and what each is given to be carried out.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::{CustomResource, Operator, World};

use super::kinds::Nursery;
use super::memory::Memory;
use super::switch::Counter;
use super::{CleanupFn, Engine};
use crate::reconcile::Reconcile;

/// A way to write an operator: as one function to what is wanted ([`Operator`]), or as handlers of what happens
/// ([`Handlers`](super::handlers::Handlers)). Kinds, sources and options are declared in the same way for each.
pub trait Style: Send + Sync + Sized + 'static {
    /// The kind.
    type Resource: CustomResource;
    /// What carries it out.
    type Engine: Reconcile<Resource = Self::Resource>;

    /// Carries it out with the caches that were declared.
    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> Self::Engine;

    /// Whether it writes into the metadata of its resources.
    fn patches_resources(&self) -> bool {
        false
    }

    /// How long one run may take, if it is not as long as usual.
    fn deadline(&self) -> Option<Duration> {
        None
    }
}

/// What an engine is put together from.
pub struct Outfit<O: Style> {
    pub(super) world: World,
    pub(super) nursery: Nursery,
    /// The controller's name, for metrics.
    pub(super) name: String,
    pub(super) cleanup: Option<CleanupFn<O>>,
    /// Whether what a resource is made of has an order.
    pub(super) ordered: bool,
}

impl<O: Operator> Style for O {
    type Resource = <O as Operator>::Resource;
    type Engine = Engine<O>;

    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> Engine<O> {
        Engine {
            operator: self,
            cleanup: outfit.cleanup,
            world: outfit.world,
            nursery: outfit.nursery,
            memory: Memory::default(),
            counter: Counter::new(outfit.name),
            ordered: outfit.ordered,
        }
    }
}
