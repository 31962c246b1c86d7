//! What an author writes.

use crate::outcome::Outcome;
use crate::resource::CustomResource;
use crate::world::World;

/// The knowledge of one kind: from a resource and the state of the world to what is wanted.
///
/// It is asked again whenever the resource, or anything that belongs to it, changes. It does no I/O: what it returns is
/// applied, pruned and reported by the runtime.
pub trait Operator: Send + Sync + 'static {
    /// The kind.
    type Resource: CustomResource;

    /// What is wanted for `resource`, and how far it is.
    fn desired(&self, resource: &Self::Resource, world: &World) -> Outcome<<Self::Resource as CustomResource>::Status>;
}
