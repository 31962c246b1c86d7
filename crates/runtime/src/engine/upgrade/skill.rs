//! What an operator knows of its upgrades, whatever its types.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use windlass_core::{Health, Operator, Terms, Upgrades, World};

/// What an operator knows of the upgrades of resources `R`.
pub(crate) trait Skill<R>: Send + Sync {
    /// The revision that a resource asks for.
    fn revision(&self, resource: &R) -> Value;
    /// Whether two revisions say the same.
    fn is_same(&self, one: &Value, other: &Value) -> bool;
    /// What people call a revision.
    fn version(&self, revision: &Value) -> String;
    /// The resource as it asks for `revision`; or why that cannot be read.
    fn pinned(&self, resource: &R, revision: &Value) -> Result<R, String>;
    /// How the revision does that is being tried.
    fn judge(&self, resource: &R, world: &World) -> Health;
    /// How long a revision has.
    fn terms(&self, resource: &R) -> Terms;
}

/// Makes the skill of an operator.
pub(crate) type SkillOf<O> = fn(Arc<O>) -> Arc<dyn Skill<<O as super::super::Style>::Resource>>;

/// The skill of an operator that declares its upgrades.
pub(crate) fn skill_of<O: Upgrades>(operator: Arc<O>) -> Arc<dyn Skill<<O as Operator>::Resource>> {
    Arc::new(Typed(operator))
}

struct Typed<O>(Arc<O>);

impl<O: Upgrades> Skill<<O as Operator>::Resource> for Typed<O> {
    fn revision(&self, resource: &<O as Operator>::Resource) -> Value {
        serde_json::to_value(self.0.revision(resource)).expect("a revision is plain data")
    }

    fn is_same(&self, one: &Value, other: &Value) -> bool {
        let read = |value: &Value| O::Revision::deserialize(value).ok();
        one == other || read(one).zip(read(other)).is_some_and(|(one, other)| one == other)
    }

    fn version(&self, revision: &Value) -> String {
        O::Revision::deserialize(revision).map(|revision| self.0.version(&revision)).unwrap_or_default()
    }

    fn pinned(
        &self,
        resource: &<O as Operator>::Resource,
        revision: &Value,
    ) -> Result<<O as Operator>::Resource, String> {
        let revision = O::Revision::deserialize(revision).map_err(|error| error.to_string())?;
        let mut pinned = resource.clone();
        self.0.pin(&mut pinned, revision);
        Ok(pinned)
    }

    fn judge(&self, resource: &<O as Operator>::Resource, world: &World) -> Health {
        self.0.judge(resource, world)
    }

    fn terms(&self, resource: &<O as Operator>::Resource) -> Terms {
        Terms { window: self.0.window(resource), deadline: self.0.deadline(resource) }
    }
}
