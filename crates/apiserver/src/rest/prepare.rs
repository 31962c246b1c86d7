//! What the server decides about every object: its identity, its times, its generation, its rules.

use serde_json::Value;

use super::{conform, names, scope::Scope};
use crate::{
    ApiError,
    object::Object,
    registry::Served,
    request::Verb,
    strategy::{self, Part},
};

/// Gives an object from outside its identity.
pub(crate) fn for_create(scope: &Scope, object: &mut Value) -> Result<(), ApiError> {
    check_namespace(scope, object)?;
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
        object.set_meta(field, Value::Null);
    }
    object.set_meta("uid", names::uid(scope.api.clock()));
    object.set_meta("creationTimestamp", scope.now());
    if object.name().is_empty() && !object.meta("generateName").is_empty() {
        object.set_meta("name", names::generate(object.meta("generateName"), scope.api.clock()));
    }
    if strategy::rules(&scope.kind).has_generation {
        object.set_meta("generation", 1);
    }
    Ok(())
}

/// Keeps what an update may not change, and counts the generation.
pub(crate) fn for_update(scope: &Scope, part: Part, object: &mut Value, old: &Value) -> Result<(), ApiError> {
    check_namespace(scope, object)?;
    let uid = object.uid().to_owned();
    if !uid.is_empty() && uid != old.uid() {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid());
        return Err(ApiError::conflict(scope.subject(), old.name(), why));
    }
    const KEPT: [&str; 6] =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName"];
    for field in KEPT {
        object.set_meta(field, old.metadata().and_then(|metadata| metadata.get(field)).cloned().unwrap_or_default());
    }
    object.set_meta("selfLink", Value::Null);
    strategy::prepare_update(&scope.kind, part, object, old, &scope.now());
    // A Pod gets its node from the cluster; nobody wants anything else of it than before.
    let counts = strategy::rules(&scope.kind).has_generation && part != Part::Binding;
    if counts && strategy::wanted_changed(&scope.kind, part, object, old) {
        object.set_meta("generation", old.generation() + 1);
    }
    Ok(())
}

/// The object must belong to the namespace of the path.
pub(crate) fn check_namespace(scope: &Scope, object: &mut Value) -> Result<(), ApiError> {
    let namespace = scope.namespace();
    match object.namespace() {
        found if found == namespace => Ok(()),
        "" => {
            object.set_meta("namespace", namespace);
            Ok(())
        }
        _ if !scope.kind.namespaced => {
            object.set_meta("namespace", Value::Null);
            Ok(())
        }
        _ => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Gives the object its canonical form and the defaults of its kind.
pub(crate) fn complete(scope: &Scope, object: &mut Value) -> Result<(), ApiError> {
    *object = completed(&scope.kind, std::mem::take(object))?;
    // A patch is looked at only when admission is through.
    if scope.request.verb != Verb::Patch {
        name_owners_once(scope, object, "");
    }
    Ok(())
}

/// Completes an object once more after admission. Plugins leave custom objects alone, and what webhooks and policies
/// change is read there; only a default may be missing again.
pub(crate) fn complete_again(scope: &Scope, object: &mut Value) -> Result<(), ApiError> {
    if scope.kind.is_builtin() {
        *object = completed(&scope.kind, std::mem::take(object))?;
    } else {
        conform::default(&scope.kind, object);
    }
    name_owners_once(scope, object, " after mutating admission happens");
    Ok(())
}

/// Takes out owners that are named again in the very same way, and tells the client, also `when` they were found.
fn name_owners_once(scope: &Scope, object: &mut Value, when: &str) {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    // Nearly all objects have one owner or none.
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return };
    let mut doubles = Vec::new();
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            doubles.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !doubles.is_empty() {
        let doubles = doubles.join(", ");
        scope.warn(format!(".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {doubles}"));
    }
}

/// The object in canonical form, with the defaults of its kind.
pub(crate) fn completed(kind: &Served, object: Value) -> Result<Value, ApiError> {
    let (mut completed, _) = conform::read(kind, object)?;
    conform::default(kind, &mut completed);
    strategy::expand(kind, &mut completed);
    Ok(completed)
}

/// Refuses an object that breaks a rule.
pub(crate) fn validate(scope: &Scope, part: Part, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let mut errors = strategy::validate(&scope.kind, part, object, old);
    let checked = conform::validate(&scope.kind, part, object, old);
    errors.extend(checked.errors);
    checked.warnings.into_iter().for_each(|warning| scope.warn(warning));
    scope.check(object, errors)?;
    strategy::warnings(&scope.kind, part, object, old).into_iter().for_each(|warning| scope.warn(warning));
    Ok(())
}
