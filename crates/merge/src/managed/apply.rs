//! Server-side apply.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::conflict::Conflicts;
use super::entry::{EntryError, ManagerId, Managers, Operation, by_manager, decode};
use super::last_applied;
use super::prune::prune;
use super::transfer::{self, Changes, Transfer, new_entry, remove_unowned};
use super::update::{set_managed_fields, without_managed_fields};
use super::write::{ConvertError, View, Write};
use crate::order;
use crate::shape::Shape;
use crate::typed::{self, Cause, Problem};

/// The manager of what an object had before anybody applied to it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Why a configuration was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the configuration changes. Apply again with `force`, or leave them out.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration does not fit its type.
    #[error("the configuration cannot be applied: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unfit(Vec<Problem>),
    /// The configuration is in another version than the request.
    #[error("the configuration is of version {given:?}, the request of {expected:?}")]
    Version {
        /// The `apiVersion` of the configuration.
        given: String,
        /// The version of the request.
        expected: String,
    },
    /// A configuration does not say who owns what.
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The live object has an item that its keys do not identify, so that nobody can own a part of it.
    #[error("the live object cannot be tracked: {0}")]
    Untracked(Problem),
    /// The live object has `managedFields` that cannot be read; write `managedFields: []` to start over.
    #[error("the live object has broken managed fields: {0}")]
    Entries(#[from] EntryError),
    /// An entry is of another version and the object cannot be converted to it.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}

/// Applies a configuration to the live object (`None`: creates one from it) and returns the object to store.
///
/// *Guarantees.* What is applied is merged in by the type; what the manager applied before, applies no more and nobody
/// else owns is removed; equal values are owned together; a field of another manager is taken only by `force`. Where
/// nothing changes, the result equals the live object, times included.
///
/// # Errors
/// See [`ApplyError`]; nothing is changed.
pub fn apply<S: Shape>(
    write: &Write<'_, S>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    check(write, config)?;
    let recorded = live.and_then(|live| live.pointer("/metadata/managedFields"));
    let mut managers = by_manager(decode(recorded)?);
    let live = live.map_or_else(|| Value::Object(Map::new()), without_managed_fields);
    if managers.is_empty() {
        let problems = typed::check(&live, Some(&write.view(&live).shape));
        if let Some(problem) = problems.into_iter().find(|problem| matches!(problem.cause, Cause::Item(_))) {
            return Err(ApplyError::Untracked(problem));
        }
        let nothing = Value::Object(Map::new());
        transfer::follow(write, BEFORE_FIRST_APPLY, (&nothing, &live), &mut managers)?;
    }
    transfer::reconcile(write, &live, &mut managers)?;

    let merged = Merged::of(write, &live, config, managers)?;
    if let Some(conflicts) = merged.conflicts().filter(|_| !force) {
        last_applied::settle(write, &live, conflicts).map_err(ApplyError::Conflicts)?;
    }
    let (mut object, managers) = merged.finish();
    last_applied::refresh(write, config, &mut object);
    set_managed_fields(&mut object, managers);
    Ok(object)
}

/// The object that a configuration makes, before it is known whether it may.
struct Merged {
    object: Value,
    managers: Managers,
    transfer: Transfer,
}

impl Merged {
    fn of<S: Shape>(
        write: &Write<'_, S>,
        live: &Value,
        config: &Value,
        mut managers: Managers,
    ) -> Result<Self, ConvertError> {
        let (live, config) = (write.view(live), write.view(config));
        let object = typed::merge(&live.object, &config.object, Some(&live.shape));
        let mut merged = View { object: Cow::Owned(object), ..live.clone() };

        let mut entry = new_entry(write, write.manager.name, Operation::Apply);
        entry.fields = config.fields();
        entry.fields.subtract_with_inside(&write.reset);
        let id = ManagerId::of(&entry);
        let last = managers.insert(id.clone(), entry.clone());
        if let Some(last) = &last {
            merged = prune(write, merged, &managers, last)?;
        }
        let is_same = order::same(&live.object, &merged.object);
        let mut changes = Changes::between(write, live, merged);
        let transfer = Transfer::of(&mut changes, &managers, Some(&id))?;
        let object = changes.into_new().object.into_owned();

        remove_unowned(&mut entry.fields);
        // The time is that of the last change of the object; who only joins in owning it has none.
        if is_same {
            entry.time = last.and_then(|last| last.time);
        }
        managers.insert(id, entry);
        Ok(Self { object, managers, transfer })
    }

    fn conflicts(&self) -> Option<Conflicts> {
        self.transfer.conflicts()
    }

    fn finish(mut self) -> (Value, Managers) {
        self.transfer.take(&mut self.managers);
        (self.object, self.managers)
    }
}

fn check<S: Shape>(write: &Write<'_, S>, config: &Value) -> Result<(), ApplyError> {
    let given = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if given != write.manager.api_version {
        let expected = write.manager.api_version.to_owned();
        return Err(ApplyError::Version { given: given.to_owned(), expected });
    }
    if config.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFields);
    }
    match typed::check(config, Some(&write.view(config).shape)) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ApplyError::Unfit(problems)),
    }
}
