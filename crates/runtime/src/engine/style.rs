//! The ways to write an operator, and what each is given to be carried out.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::{Operator, World};

use super::kinds::Nursery;
use super::memory::Memory;
use super::switch::Counter;
use super::title::ReleasesFn;
use super::upgrade::SkillOf;
use super::{CleanupFn, Engine};
use crate::object::Object;
use crate::reconcile::Reconcile;

/// A way to write an operator: as one function to what is wanted ([`Operator`]), as handlers of what happens
/// ([`Handlers`](super::handlers::Handlers)), or with full control ([`Reconciled`](crate::Reconciled)). Kinds, sources and
/// options are declared in the same way for each.
pub trait Style: Send + Sync + Sized + 'static {
    /// The kind.
    type Resource: Object<DynamicType = ()>;
    /// What carries it out.
    type Engine: Reconcile<Resource = Self::Resource>;

    /// Carries it out with the caches that were declared.
    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> Self::Engine;

    /// Whether it writes into the metadata of its resources.
    fn patches_resources(&self) -> bool {
        false
    }

    /// Whether it asks what a cache cannot see before it takes it for the truth, and so may begin although a watch fails.
    fn is_lenient(&self) -> bool {
        true
    }

    /// How long one run may take, if it is not as long as usual.
    fn deadline(&self) -> Option<Duration> {
        None
    }
}

/// What an engine is put together from.
pub struct Outfit<O: Style> {
    pub(super) world: World,
    pub(crate) nursery: Nursery,
    /// The controller's name, for metrics.
    pub(crate) name: String,
    pub(super) cleanup: Option<CleanupFn<O>>,
    /// Whether what a resource is made of has an order.
    pub(super) ordered: bool,
    pub(super) releases: Option<ReleasesFn<O>>,
    pub(super) upgrades: Option<SkillOf<O>>,
}

impl<O: Operator> Style for O {
    type Resource = <O as Operator>::Resource;
    type Engine = Engine<O>;

    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> Engine<O> {
        Engine {
            upgrades: outfit.upgrades.map(|skill| skill(self.clone())),
            operator: self,
            cleanup: outfit.cleanup,
            world: outfit.world,
            nursery: outfit.nursery,
            memory: Memory::default(),
            counter: Counter::new(outfit.name),
            ordered: outfit.ordered,
            releases: outfit.releases,
        }
    }
}
