//! What the engine remembers of a resource between passes. Losing it costs a less precise event and a comparison, nothing
//! more.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Mutex, MutexGuard};

use windlass_core::{Child, Event};

use super::act::Before;
use crate::cache::StateId;
use crate::key::ObjectKey;

/// The memory of all resources of an operator.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<ObjectKey, Past>>);

/// What is remembered of a resource, in short: there may be many.
#[derive(Debug, Default)]
struct Past {
    uid: Box<str>,
    children: Box<[Left]>,
    events: Box<[Event]>,
}

/// A wish for a child, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// A hash of its kind and name.
    id: u64,
    /// A hash of all of it.
    content: u64,
}

/// What a pass left behind: a wish that was carried out, and the state of the child that is known to be as wished, if one
/// is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) wish: Wish,
    pub(crate) found: Option<StateId>,
}

impl Wish {
    pub(crate) fn of(child: &Child) -> Self {
        let mut content = Digest::default();
        serde_json::to_writer(&mut content, &child.object).expect("a value is JSON, and a hash takes all");
        let id = (&child.resource.group, &child.resource.kind, &child.name);
        Self { id: hash(&id), content: content.0.finish() }
    }
}

impl Memory {
    /// What was done before for this owner to the child of `wish`.
    pub(crate) fn before(&self, owner: &ObjectKey, uid: &str, wish: Wish) -> Before {
        match self.left(owner, uid, wish) {
            None => Before::New,
            Some(left) if left.wish == wish => Before::Same,
            Some(_) => Before::Other,
        }
    }

    /// Whether the child was found to be as wished in the very state that it is in.
    pub(crate) fn is_as_wished(&self, owner: &ObjectKey, uid: &str, wish: Wish, state: StateId) -> bool {
        let left = self.left(owner, uid, wish).filter(|left| left.wish == wish);
        left.is_some_and(|left| left.found == Some(state))
    }

    /// Remembers what a complete pass left, and returns the events that the pass before did not have.
    pub(crate) fn passed(&self, owner: &ObjectKey, uid: &str, children: Box<[Left]>, events: &[Event]) -> Vec<Event> {
        let mut pasts = self.lock();
        let past = pasts.entry(owner.clone()).or_default();
        if *past.uid != *uid {
            *past = Past { uid: uid.into(), ..Past::default() };
        }
        past.children = children;
        let news = events.iter().filter(|event| !past.events.contains(event)).cloned().collect();
        past.events = events.into();
        news
    }

    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.lock().remove(owner);
    }

    fn left(&self, owner: &ObjectKey, uid: &str, wish: Wish) -> Option<Left> {
        let pasts = self.lock();
        let past = pasts.get(owner).filter(|past| *past.uid == *uid)?;
        past.children.iter().find(|left| left.wish.id == wish.id).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Past>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A hash of what is written.
#[derive(Default)]
struct Digest(DefaultHasher);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn wish(text: &str) -> Wish {
        let mut map = ConfigMap { data: Some([("a".into(), text.into())].into()), ..ConfigMap::default() };
        map.metadata.name = Some("c".into());
        Wish::of(&Child::new(&map).unwrap())
    }

    #[test]
    fn a_child_is_as_wished_while_neither_it_nor_the_wish_changes() {
        let (memory, owner) = (Memory::default(), ObjectKey::namespaced("n", "o"));
        let state = |version: &str| StateId::of(Some("child"), Some(version));
        assert_eq!(memory.before(&owner, "1", wish("x")), Before::New);
        memory.passed(&owner, "1", [Left { wish: wish("x"), found: None }].into(), &[]);
        assert!(!memory.is_as_wished(&owner, "1", wish("x"), state("5")), "it was applied, and not looked at since");
        memory.passed(&owner, "1", [Left { wish: wish("x"), found: Some(state("5")) }].into(), &[]);
        let rows = [("1", "x", "5", true), ("1", "x", "6", false), ("1", "y", "5", false), ("2", "x", "5", false)];
        for (uid, text, version, expected) in rows {
            assert_eq!(
                memory.is_as_wished(&owner, uid, wish(text), state(version)),
                expected,
                "{uid} {text} {version}"
            );
        }
        let before = [("1", "x"), ("1", "y"), ("2", "x")].map(|(uid, text)| memory.before(&owner, uid, wish(text)));
        assert_eq!(before, [Before::Same, Before::Other, Before::New]);
    }
}
