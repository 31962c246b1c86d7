//! What happened to objects.

use std::sync::Arc;

use kube::Resource;

use super::kept::Kept;
use crate::key::ObjectKey;
use crate::object::Object;
use crate::packer::Packer;

/// What happened to an object.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// The object before, `None` if it was not known.
    pub old: Option<Arc<K>>,
    /// The object after, `None` if it is gone.
    pub new: Option<Arc<K>>,
    /// Whether it comes from a list rather than from news.
    pub listed: bool,
}

impl<K: Resource> Change<K> {
    /// The newest state that is known.
    pub fn object(&self) -> &Arc<K> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an old or a new object")
    }

    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&**self.object())
    }

    /// Both states, old first: a mapper that looks at references must see the ones that went away, too.
    pub fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(self.new.iter())
    }
}

/// A change of an object that may be packed.
#[derive(Debug)]
pub(super) struct Pending<K> {
    pub(super) old: Option<Kept<K>>,
    pub(super) new: Option<Kept<K>>,
    pub(super) listed: bool,
}

/// Changes that are read one after the other: those of a long list are many.
#[derive(Debug)]
pub(crate) struct Changes<K> {
    pending: std::vec::IntoIter<Pending<K>>,
    packer: Arc<Packer>,
}

impl<K> Changes<K> {
    pub(super) fn new(pending: Vec<Pending<K>>, packer: Arc<Packer>) -> Self {
        Self { pending: pending.into_iter(), packer }
    }
}

impl<K: Object> Iterator for Changes<K> {
    type Item = Change<K>;

    fn next(&mut self) -> Option<Change<K>> {
        loop {
            let Pending { old, new, listed } = self.pending.next()?;
            let open = |kept: Kept<K>| kept.open(&self.packer).map(|open| open.object);
            let change = Change { old: old.and_then(open), new: new.and_then(open), listed };
            if change.old.is_some() || change.new.is_some() {
                return Some(change);
            }
        }
    }
}
