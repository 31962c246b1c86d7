//! Which kinds are served: the built-in ones and those of established CustomResourceDefinitions.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use tokio::sync::watch;
use windlass_schema::{Kind, builtin, metrics};
use windlass_store::Revision;

use crate::crd::CustomKind;

/// A kind that is served, and what only custom kinds have.
///
/// It is a cheap handle; its fields are those of the [`Kind`].
#[derive(Clone, Debug)]
pub struct Served {
    kind: Arc<Kind>,
    custom: Option<Arc<CustomKind>>,
    /// Objects of a custom kind that were written after this revision have its present schema.
    settled: Arc<AtomicU64>,
}

impl Served {
    /// A built-in kind.
    pub(crate) fn builtin(kind: Arc<Kind>) -> Self {
        Self { kind, custom: None, settled: Arc::default() }
    }

    /// A custom kind in one of its versions.
    pub(crate) fn custom_kind(kind: Arc<Kind>, custom: Arc<CustomKind>) -> Self {
        Self { kind, custom: Some(custom), settled: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// The kind, shared.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// What only custom kinds have; `None` for built-in ones.
    pub(crate) fn custom(&self) -> Option<&Arc<CustomKind>> {
        self.custom.as_ref()
    }

    /// Whether what the commit `revision` wrote was completed with the schema that this kind has.
    pub(crate) fn is_settled_at(&self, revision: Revision) -> bool {
        revision.0 > self.settled.load(Ordering::Acquire)
    }

    /// Notes that commits up to `revision` may have been made with another schema.
    pub(crate) fn settle(&self, revision: Revision) {
        // The first word counts as such; later ones can only move it on.
        let later = |settled: u64| if settled == u64::MAX { revision.0 } else { settled.max(revision.0) };
        self.settled.fetch_update(Ordering::AcqRel, Ordering::Acquire, |settled| Some(later(settled))).ok();
    }

    /// Whether both are the same kind with the same schema.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kind, &other.kind)
    }
}

impl Deref for Served {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        &self.kind
    }
}

/// All kinds that are served at one moment. A clone shares everything, so that one more definition costs the same however
/// many there are.
#[derive(Clone, Debug)]
pub struct Catalog {
    builtin: Arc<Index>,
    /// Kinds by the name of the definition that made them.
    custom: RedBlackTreeMapSync<String, Arc<[Served]>>,
    by_resource: HashTrieMapSync<String, Served>,
    by_kind: HashTrieMapSync<String, Served>,
}

/// The built-in kinds, which stay as they are.
#[derive(Debug)]
struct Index {
    served: Vec<Served>,
    by_resource: HashMap<String, usize>,
    by_kind: HashMap<String, usize>,
}

impl Index {
    fn new(kinds: impl Iterator<Item = Arc<Kind>>) -> Self {
        let served: Vec<Served> = kinds.map(Served::builtin).collect();
        let by =
            |key: fn(&Served) -> String| served.iter().enumerate().map(|(index, kind)| (key(kind), index)).collect();
        Self { by_resource: by(own_resource_key), by_kind: by(own_kind_key), served }
    }
}

impl Catalog {
    fn new(kinds: impl Iterator<Item = Arc<Kind>>) -> Self {
        Self {
            builtin: Arc::new(Index::new(kinds)),
            custom: RedBlackTreeMapSync::new_sync(),
            by_resource: HashTrieMapSync::new_sync(),
            by_kind: HashTrieMapSync::new_sync(),
        }
    }

    /// The kinds: built-in ones in the order of discovery, then custom ones by the name of their definition.
    pub fn kinds(&self) -> impl Iterator<Item = &Served> {
        self.builtin.served.iter().chain(self.custom.values().flat_map(|kinds| kinds.iter()))
    }

    /// The kind behind a path. A definition cannot take the place of a built-in kind.
    pub fn lookup(&self, group: &str, version: &str, plural: &str) -> Option<&Served> {
        let key = key(group, version, plural);
        let builtin = self.builtin.by_resource.get(&key).map(|index| &self.builtin.served[*index]);
        builtin.or_else(|| self.by_resource.get(&key))
    }

    /// The kind of an object.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Served> {
        let key = key(group, version, kind);
        let builtin = self.builtin.by_kind.get(&key).map(|index| &self.builtin.served[*index]);
        builtin.or_else(|| self.by_kind.get(&key))
    }

    /// Puts `kinds` in the place of those that `definition` had; `false` if it has none and had none.
    fn replace(&mut self, definition: &str, kinds: Vec<Served>) -> bool {
        let before = self.custom.get(definition).cloned();
        for kind in before.iter().flat_map(|kinds| kinds.iter()) {
            self.by_resource.remove_mut(&own_resource_key(kind));
            self.by_kind.remove_mut(&own_kind_key(kind));
        }
        for kind in &kinds {
            self.by_resource.insert_mut(own_resource_key(kind), kind.clone());
            self.by_kind.insert_mut(own_kind_key(kind), kind.clone());
        }
        if kinds.is_empty() {
            self.custom.remove_mut(definition);
            return before.is_some();
        }
        self.custom.insert_mut(definition.to_owned(), kinds.into());
        true
    }
}

fn own_resource_key(kind: &Served) -> String {
    key(&kind.group, &kind.version, &kind.plural)
}

fn own_kind_key(kind: &Served) -> String {
    key(&kind.group, &kind.version, &kind.kind.kind)
}

fn key(group: &str, version: &str, name: &str) -> String {
    format!("{group}/{version}/{name}")
}

/// The catalog that is in force, and word of its changes.
#[derive(Debug)]
pub struct Registry {
    catalog: RwLock<Arc<Catalog>>,
    changes: watch::Sender<u64>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// The built-in kinds.
    pub fn new() -> Self {
        Self::of(builtin().kinds().iter().cloned())
    }

    /// The built-in kinds and those of `metrics.k8s.io`.
    pub fn with_metrics() -> Self {
        Self::of(builtin().kinds().iter().chain(metrics().kinds()).cloned())
    }

    fn of(kinds: impl Iterator<Item = Arc<Kind>>) -> Self {
        Self { catalog: RwLock::new(Arc::new(Catalog::new(kinds))), changes: watch::Sender::new(0) }
    }

    /// What is served now; it does not change under its holder.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The kind behind a path.
    pub fn lookup(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        self.catalog().lookup(group, version, plural).cloned()
    }

    /// The kind of an object.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<Served> {
        self.catalog().by_kind(group, version, kind).cloned()
    }

    /// Notes that `revision` wrote an object of `kind`; should that kind have changed meanwhile, the object has an old
    /// schema.
    pub(crate) fn wrote(&self, kind: &Served, revision: Revision) {
        if kind.custom.is_none() {
            return;
        }
        let catalog = self.catalog();
        let current = catalog.lookup(&kind.group, &kind.version, &kind.plural);
        if let Some(current) = current.filter(|current| !current.is_same(kind)) {
            current.settle(revision);
        }
    }

    /// Tells of changes: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Serves the kinds of a definition in place of those that it had; none withdraws it.
    pub(crate) fn serve(&self, definition: &str, kinds: Vec<Served>) {
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::make_mut(&mut catalog).replace(definition, kinds) {
            return;
        }
        drop(catalog);
        self.changes.send_modify(|number| *number += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, plural: &str) -> Served {
        let mut kind = Kind::clone(builtin().find("", "v1", "configmaps").unwrap());
        kind.group = group.to_owned();
        kind.plural = plural.to_owned();
        Served::builtin(Arc::new(kind))
    }

    #[test]
    fn definitions_come_and_go() {
        let registry = Registry::new();
        let mut changes = registry.changes();
        assert!(registry.lookup("apps", "v1", "deployments").is_some());
        assert!(registry.lookup("example.com", "v1", "things").is_none());
        registry.serve("things.example.com", vec![kind("example.com", "things")]);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(registry.lookup("example.com", "v1", "things").unwrap().plural, "things");
        registry.serve("things.example.com", vec![]);
        assert!(registry.lookup("example.com", "v1", "things").is_none());
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        registry.serve("things.example.com", vec![]);
        assert!(!changes.has_changed().unwrap(), "nothing changed");
    }

    #[test]
    fn built_in_kinds_cannot_be_replaced() {
        let registry = Registry::new();
        registry.serve("deployments.apps", vec![kind("apps", "deployments")]);
        assert_eq!(registry.lookup("apps", "v1", "deployments").unwrap().kind().kind, "Deployment");
    }
}
