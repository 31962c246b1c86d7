//! How fields change hands when an object changes.

use std::collections::BTreeMap;

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

/// Fields without those that nobody owns.
pub(super) fn owned(fields: &FieldSet) -> FieldSet {
    fields.difference(&FieldSet::of_names(UNOWNED))
}

/// The entry that the manager of a write has after `live` became `new`, merged with what it had; the rest of the
/// managers lose what changed.
pub(super) fn follow<S: Shape>(
    write: &Write<'_, S>,
    manager: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
) -> Result<(), ConvertError> {
    let (live, new) = (write.view(live), write.view(new));
    let comparison = compare(write, &live, &new);
    let gained = owned(&comparison.modified.union(&comparison.added));
    Transfer::of(write, (&live, &new), managers, None)?.take(managers);
    if gained.is_empty() {
        return Ok(());
    }
    let mut entry = new_entry(write, manager, Operation::Update);
    let id = ManagerId::of(&entry);
    entry.fields = managers.get(&id).map_or_else(|| gained.clone(), |previous| previous.fields.union(&gained));
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
            Some(view) => entry.fields = entry.fields.reconciled(Some(&view.shape)),
            None => gone.push(id.clone()),
        }
    }
    managers.retain(|id, _| !gone.contains(id));
    Ok(())
}

impl Transfer {
    /// Finds what the change from `live` to `new` takes from every manager but `except`.
    pub(super) fn of<S: Shape>(
        write: &Write<'_, S>,
        (live, new): (&View<'_, S>, &View<'_, S>),
        managers: &Managers,
        except: Option<&ManagerId>,
    ) -> Result<Self, ConvertError> {
        let mut comparisons: BTreeMap<&str, Option<Comparison>> = BTreeMap::new();
        let mut taken = BTreeMap::new();
        for (id, entry) in managers.iter().filter(|(id, _)| Some(*id) != except) {
            if !comparisons.contains_key(entry.api_version.as_str()) {
                comparisons.insert(&entry.api_version, compare_in(write, (live, new), &entry.api_version)?);
            }
            taken.insert(
                id.clone(),
                match &comparisons[entry.api_version.as_str()] {
                    Some(comparison) => Taken::Fields {
                        changed: entry.fields.intersection(&comparison.modified.union(&comparison.added)),
                        removed: comparison.removed.clone(),
                    },
                    None => Taken::All,
                },
            );
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
                    entry.fields = entry.fields.difference(changed).difference(removed);
                }
                _ => {
                    managers.remove(id);
                }
            }
        }
        managers.retain(|_, entry| !entry.fields.is_empty());
    }
}

fn compare<S: Shape>(write: &Write<'_, S>, live: &View<'_, S>, new: &View<'_, S>) -> Comparison {
    typed::compare(&live.object, &new.object, Some(&new.shape)).without(&write.reset)
}

fn compare_in<S: Shape>(
    write: &Write<'_, S>,
    (live, new): (&View<'_, S>, &View<'_, S>),
    api_version: &str,
) -> Result<Option<Comparison>, ConvertError> {
    let views = (write.converted(live, api_version)?, write.converted(new, api_version)?);
    Ok(match views {
        (Some(live), Some(new)) => Some(compare(write, &live, &new)),
        _ => None,
    })
}
