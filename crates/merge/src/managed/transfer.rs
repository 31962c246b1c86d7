//! How fields change hands when an object changes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::conflict::{Conflict, Conflicts};
use super::entry::{Entry, ManagerId, Managers, Operation};
use super::write::{ConvertError, View, Write};
use crate::fields::FieldSet;
use crate::shape::Shape;
use crate::typed::{self, Comparison};

/// Fields that are never owned: they name the object or are written by the server alone.
const UNOWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// What a change takes from each manager.
pub(super) struct Transfer {
    taken: BTreeMap<ManagerId, Taken>,
}

enum Taken {
    Fields { changed: FieldSet, removed: FieldSet },
    // The version of the entry is no longer there, and with it its names for fields.
    All,
}

/// Takes out the fields that nobody owns.
pub(super) fn remove_unowned(fields: &mut FieldSet) {
    static UNOWNED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_names(UNOWNED));
    fields.subtract(&UNOWNED_FIELDS);
}

/// The entry that the manager of a write has after `live` became `new`, merged with what it had; the rest of the
/// managers lose what changed.
pub(super) fn follow<S: Shape>(
    write: &Write<'_, S>,
    manager: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
) -> Result<(), ConvertError> {
    let mut changes = Changes::between(write, write.view(live), write.view(new));
    Transfer::of(&mut changes, managers, None)?.take(managers);
    let mut gained = changes.into_set()?;
    remove_unowned(&mut gained);
    if gained.is_empty() {
        return Ok(());
    }
    let mut entry = new_entry(write, manager, Operation::Update);
    let id = ManagerId::of(&entry);
    if let Some(previous) = managers.remove(&id) {
        gained.absorb(previous.fields);
    }
    entry.fields = gained;
    managers.insert(id, entry);
    Ok(())
}

/// An entry without fields for the manager of a write.
pub(super) fn new_entry<S: Shape>(write: &Write<'_, S>, manager: &str, operation: Operation) -> Entry {
    Entry {
        manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
        operation,
        api_version: write.manager.api_version.to_owned(),
        time: Some(write.manager.time),
        subresource: write.manager.subresource.to_owned(),
        fields: FieldSet::new(),
    }
}

/// Brings every set in line with the types of today; entries of versions that are gone are dropped.
pub(super) fn reconcile<S: Shape>(
    write: &Write<'_, S>,
    live: &Value,
    managers: &mut Managers,
) -> Result<(), ConvertError> {
    let live = write.view(live);
    let mut gone = Vec::new();
    for (id, entry) in managers.iter_mut() {
        match write.converted(&live, &entry.api_version)? {
            Some(view) => entry.fields.reconcile(Some(&view.shape)),
            None => gone.push(id.clone()),
        }
    }
    managers.retain(|id, _| !gone.contains(id));
    Ok(())
}

impl Transfer {
    /// Finds what the change takes from every manager but `except`.
    pub(super) fn of<S: Shape>(
        changes: &mut Changes<'_, S>,
        managers: &Managers,
        except: Option<&ManagerId>,
    ) -> Result<Self, ConvertError> {
        let mut taken = BTreeMap::new();
        for (id, entry) in managers.iter().filter(|(id, _)| Some(*id) != except) {
            let taken_here = match changes.in_version(&entry.api_version)? {
                Some(change) => Taken::Fields {
                    changed: entry.fields.intersection(&change.set),
                    removed: entry.fields.intersection(&change.removed),
                },
                None => Taken::All,
            };
            taken.insert(id.clone(), taken_here);
        }
        Ok(Self { taken })
    }

    /// Fields that would be taken from their owners by changing them. Removing a field is no conflict: it stays as long
    /// as somebody owns it.
    pub(super) fn conflicts(&self) -> Option<Conflicts> {
        let conflicts = self.taken.iter().flat_map(|(id, taken)| match taken {
            Taken::Fields { changed, .. } => changed.paths().into_iter().map(|path| Conflict::new(id, path)).collect(),
            Taken::All => Vec::new(),
        });
        let conflicts: Vec<_> = conflicts.collect();
        (!conflicts.is_empty()).then_some(Conflicts(conflicts))
    }

    /// Takes the fields; a manager that is left with none goes.
    pub(super) fn take(&self, managers: &mut Managers) {
        for (id, taken) in &self.taken {
            match (taken, managers.get_mut(id)) {
                (Taken::Fields { changed, removed }, Some(entry)) => {
                    entry.fields.subtract(changed);
                    entry.fields.subtract(removed);
                }
                _ => {
                    managers.remove(id);
                }
            }
        }
        managers.retain(|_, entry| !entry.fields.is_empty());
    }
}

/// What a write changes, in every version in which somebody owns something.
pub(super) struct Changes<'a, S: Shape> {
    write: &'a Write<'a, S>,
    live: View<'a, S>,
    new: View<'a, S>,
    by_version: BTreeMap<String, Option<Change>>,
}

/// What a write changes, in the names of one version.
pub(super) struct Change {
    /// Fields that are new or have another content.
    set: FieldSet,
    /// Fields that are gone.
    removed: FieldSet,
}

impl<'a, S: Shape> Changes<'a, S> {
    pub(super) fn between(write: &'a Write<'a, S>, live: View<'a, S>, new: View<'a, S>) -> Self {
        Self { write, live, new, by_version: BTreeMap::new() }
    }

    /// The change in this version; `None` where the version is gone.
    fn in_version(&mut self, api_version: &str) -> Result<Option<&Change>, ConvertError> {
        // Without conversion all versions are alike.
        let version = if self.write.convert.is_some() { api_version } else { self.write.manager.api_version };
        if !self.by_version.contains_key(version) {
            self.by_version.insert(version.to_owned(), self.compare(version)?);
        }
        Ok(self.by_version[version].as_ref())
    }

    fn compare(&self, version: &str) -> Result<Option<Change>, ConvertError> {
        let views = (self.write.converted(&self.live, version)?, self.write.converted(&self.new, version)?);
        let (Some(live), Some(new)) = views else { return Ok(None) };
        let Comparison { added: mut set, modified, removed } =
            typed::compare(&live.object, &new.object, Some(&new.shape)).without(&self.write.reset);
        set.absorb(modified);
        Ok(Some(Change { set, removed }))
    }

    /// The fields that are new or have another content, in the version of the request.
    fn into_set(mut self) -> Result<FieldSet, ConvertError> {
        let version = self.write.manager.api_version;
        self.in_version(version)?;
        Ok(self.by_version.remove(version).flatten().map(|change| change.set).unwrap_or_default())
    }

    /// The object after the change.
    pub(super) fn into_new(self) -> View<'a, S> {
        self.new
    }
}
