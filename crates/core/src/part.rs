//! An object that is wanted at its place in an order.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::child::{Child, ChildError};
use crate::readiness::Readiness;

/// A wanted object with a name for the others to refer to, and with what has to be so before it is made or changed.
///
/// ```
/// # use k8s_openapi::api::{apps::v1::StatefulSet, batch::v1::Job};
/// # use windlass_core::{Desired, Part, Readiness};
/// # fn of(set: StatefulSet, job: Job) -> Desired<()> {
/// Desired::new()
///     .part(Part::new("database", set))
///     .part(Part::new("migration", job).after("database"))
/// # }
/// ```
#[derive(Clone)]
#[must_use = "pass it to Desired::part"]
pub struct Part<K> {
    name: String,
    object: K,
    after: Vec<String>,
    missing: Option<String>,
    judge: Arc<dyn Fn(&K) -> Readiness + Send + Sync>,
}

impl<K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static> Part<K> {
    /// The part called `name`, of lowercase letters, digits and `-`. What its kind is ready by is known
    /// ([`Readiness::of`]), unless [`Part::ready`] says otherwise.
    pub fn new(name: impl Into<String>, object: K) -> Self {
        let (after, missing) = (Vec::new(), None);
        Self { name: name.into(), object, after, missing, judge: Arc::new(|object| Readiness::of(object)) }
    }

    /// Is made and changed when the part called `part` is ready, and goes before that one does. May be said several times.
    pub fn after(mut self, part: impl Into<String>) -> Self {
        self.after.push(part.into());
        self
    }

    /// Is made and changed while `holds`; otherwise it waits for `what`, and what there is of it stays as it is.
    pub fn when(mut self, holds: bool, what: impl Into<String>) -> Self {
        if !holds {
            self.missing.get_or_insert(what.into());
        }
        self
    }

    /// Says when the part is ready.
    pub fn ready(mut self, judge: impl Fn(&K) -> Readiness + Send + Sync + 'static) -> Self {
        self.judge = Arc::new(judge);
        self
    }

    /// Is ready as soon as it is there.
    pub fn ready_when_there(self) -> Self {
        self.ready(|_| Readiness::Ready)
    }

    /// Forgets the type.
    pub(crate) fn piece(self) -> Result<Piece, ChildError> {
        let child = Child::new(&self.object)?;
        let judge = self.judge;
        let judge = move |live: &Value| match K::deserialize(live) {
            Ok(object) => judge(&object),
            Err(why) => Readiness::NotYet(format!("it cannot be read: {why}")),
        };
        Ok(Piece { name: self.name, child, after: self.after, missing: self.missing, judge: Arc::new(judge) })
    }
}

impl<K> Debug for Part<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).field("after", &self.after).finish_non_exhaustive()
    }
}

/// A [`Part`] whose type is forgotten.
#[derive(Clone)]
pub struct Piece {
    /// What the others call it.
    pub name: String,
    /// The object.
    pub child: Child,
    /// The parts that have to be ready before it is made or changed.
    pub after: Vec<String>,
    /// What else it waits for, if it does.
    pub missing: Option<String>,
    judge: Arc<dyn Fn(&Value) -> Readiness + Send + Sync>,
}

impl Piece {
    /// How far the object is that lives under its name.
    pub fn readiness(&self, live: &Value) -> Readiness {
        (self.judge)(live)
    }
}

impl Debug for Piece {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").field("name", &self.name).field("after", &self.after).finish_non_exhaustive()
    }
}
