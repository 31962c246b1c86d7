//! Objects that kubectl used to apply from the client: the annotation with what it applied last.

use serde_json::Value;

use super::conflict::Conflicts;
use super::write::Write;
use crate::fields::FieldSet;
use crate::shape::Shape;
use crate::typed;

/// The only manager for which the annotation counts; to be left alone, use another.
const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The size that all annotations of an object may have together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Lets kubectl take fields that it had applied itself, from the client, and that are still as it left them.
///
/// # Errors
/// The conflicts that remain.
pub(super) fn settle<S: Shape>(write: &Write<'_, S>, live: &Value, conflicts: Conflicts) -> Result<(), Conflicts> {
    let Some(own) = applied_from_client(write, live) else { return Err(conflicts) };
    match conflicts.0.into_iter().filter(|conflict| !own.contains(&conflict.path)).collect::<Vec<_>>() {
        conflicts if conflicts.is_empty() => Ok(()),
        conflicts => Err(Conflicts(conflicts)),
    }
}

/// Keeps the annotation of an object that has it in step with what kubectl applies, so that one can go back.
pub(super) fn refresh<S: Shape>(write: &Write<'_, S>, config: &Value, object: &mut Value) {
    if write.manager.name != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION.to_owned(), format!("{config}\n").into());
    let sizes = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
    if sizes.sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn applied_from_client<S: Shape>(write: &Write<'_, S>, live: &Value) -> Option<FieldSet> {
    if write.manager.name != KUBECTL {
        return None;
    }
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion").and_then(Value::as_str) != Some(write.manager.api_version) {
        return None;
    }
    let view = write.view(&applied);
    let comparison = typed::compare(&applied, live, Some(&view.shape));
    let changed = comparison.modified.union(&comparison.added).union(&comparison.removed);
    Some(view.fields().difference(&changed))
}

fn annotation(object: &Value) -> Option<&str> {
    let annotation = object.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    (!annotation.is_empty()).then_some(annotation)
}
