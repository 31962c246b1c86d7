//! Deleting one object.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use windlass_store::{CommitError, Revision, Write};

use super::{
    deletion::{Deletion, decide},
    get,
    options::DeleteOptions,
    scope::Scope,
    storage,
};
use crate::{
    ApiError,
    admission::Operation,
    codec::{Body, document, read},
    object::Object,
    request::Verb,
    strategy,
};

/// How often a delete is tried again when the object changes under it.
const TRIES_MAX: usize = 32;

/// Answers a DELETE of one object.
pub(crate) async fn delete(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let options = options(scope, &body)?;
    let deleted = delete_object(scope, &scope.request.name, &options).await?;
    warn(scope, &options);
    let status = if !deleted.gone && options.cascades { StatusCode::ACCEPTED } else { StatusCode::OK };
    if !deleted.gone || strategy::rules(&scope.kind).returns_deleted {
        return scope.answer(status, &deleted.object);
    }
    Ok(crate::codec::respond(StatusCode::OK, &success(scope, &deleted.object), &scope.accept))
}

/// Jobs keep their Pods unless somebody says otherwise, which surprises people.
pub(crate) fn warn(scope: &Scope, options: &DeleteOptions) {
    if (scope.kind.group.as_str(), scope.kind.plural.as_str()) == ("batch", "jobs") && options.propagation.is_none() {
        scope.warn(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
             propagationPolicy=Orphan to suppress this warning",
        );
    }
}

/// The options in the body or the query.
pub(crate) fn options(scope: &Scope, body: &Bytes) -> Result<DeleteOptions, ApiError> {
    let body = if body.is_empty() { None } else { Some(document(&scope.headers, body)?.value) };
    DeleteOptions::new(&scope.query, body.as_ref())
}

fn success(scope: &Scope, object: &Value) -> Value {
    let mut details = json!({ "name": object.name(), "kind": scope.kind.plural, "uid": object.uid() });
    if !scope.kind.group.is_empty() {
        details["group"] = Value::from(scope.kind.group.as_str());
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

/// What a delete left.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Value,
    /// Whether it is no longer stored.
    pub(crate) gone: bool,
}

/// Deletes the object `name`, or marks it.
pub(crate) async fn delete_object(scope: &Scope, name: &str, options: &DeleteOptions) -> Result<Deleted, ApiError> {
    for _ in 0..TRIES_MAX {
        let live = get::live(scope, name).await?;
        check_preconditions(scope, &live, options)?;
        let live = admit(scope, name, options, live).await?;
        let decision = decide(&scope.kind, &live, options, scope.api.clock().now());
        if let Some(deleted) = perform(scope, live, decision, options.dry_run).await? {
            return Ok(deleted);
        }
    }
    Err(ApiError::modified(scope.subject(), name))
}

/// As [`delete_object`], for what admission has judged as something else.
pub(crate) async fn delete_admitted(scope: &Scope, name: &str, options: &DeleteOptions) -> Result<(), ApiError> {
    for _ in 0..TRIES_MAX {
        let live = get::live(scope, name).await?;
        check_preconditions(scope, &live, options)?;
        let decision = decide(&scope.kind, &live, options, scope.api.clock().now());
        if perform(scope, live, decision, options.dry_run).await?.is_some() {
            return Ok(());
        }
    }
    Err(ApiError::modified(scope.subject(), name))
}

/// Lets admission judge the delete; gives back what is to be deleted.
async fn admit(scope: &Scope, name: &str, options: &DeleteOptions, live: Value) -> Result<Value, ApiError> {
    let mut review = scope.review(Operation::Delete, name, Value::Null, live);
    review.dry_run = options.dry_run;
    review.options = options.described();
    scope.mutate(&mut review).await?;
    scope.validate(&mut review).await?;
    Ok(review.old)
}

/// `None` if the object changed in between.
async fn perform(scope: &Scope, live: Value, decision: Deletion, dry_run: bool) -> Result<Option<Deleted>, ApiError> {
    let key = storage::key(&scope.kind, scope.namespace(), live.name());
    let revision = live.resource_version().parse().map(Revision).map_err(ApiError::internal)?;
    let is_marked = matches!(decision, Deletion::MarkAndRemove(_));
    let (write, object, gone) = match decision {
        Deletion::Pending => return Ok(Some(Deleted { object: live, gone: false })),
        Deletion::Remove => (Write::delete(key, revision), live, true),
        Deletion::MarkAndRemove(object) if dry_run => return Ok(Some(Deleted { object, gone: true })),
        Deletion::MarkAndRemove(object) => {
            let bytes = storage::encode(&scope.api, &scope.kind, &object).await?;
            match scope.api.store().commit(vec![Write::update(key.as_str(), revision, bytes)]).await {
                Ok(revision) => (Write::delete(key, revision), object, true),
                Err(CommitError::Precondition { .. }) => return Ok(None),
                Err(error) => return Err(storage::store_error(error)),
            }
        }
        Deletion::Mark(object) => {
            let bytes = storage::encode(&scope.api, &scope.kind, &object).await?;
            (Write::update(key, revision, bytes), object, false)
        }
    };
    if dry_run {
        return Ok(Some(Deleted { object, gone }));
    }
    let committed = scope.api.store().commit(vec![write]).await;
    ended(committed, Deleted { object, gone }, is_marked)
}

/// What a delete left after its last write; `None` if the object changed before it.
fn ended(
    committed: Result<Revision, CommitError>,
    mut deleted: Deleted,
    is_marked: bool,
) -> Result<Option<Deleted>, ApiError> {
    match committed {
        Ok(revision) => {
            deleted.object.set_meta("resourceVersion", revision.to_string());
            Ok(Some(deleted))
        }
        // Who sees the mark may remove the object first, and it is gone as it was wished.
        Err(CommitError::Precondition { actual: None, .. }) if is_marked => Ok(Some(deleted)),
        Err(CommitError::Precondition { .. }) => Ok(None),
        Err(error) => Err(storage::store_error(error)),
    }
}

fn check_preconditions(scope: &Scope, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    // Of a collection of them each is deleted as an object of any kind is.
    if strategy::only_begins(&scope.kind) && scope.request.verb == Verb::Delete {
        return check_plain(scope, live, options);
    }
    if let Some(uid) = options.uid.as_ref().filter(|uid| *uid != live.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then \
             recreated",
            live.uid()
        );
        return Err(ApiError::conflict(scope.kind_subject(), live.name(), why));
    }
    if let Some(version) = options.resource_version.as_ref().filter(|version| *version != live.resource_version()) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might \
             have been modified",
            live.resource_version()
        );
        return Err(ApiError::conflict(scope.kind_subject(), live.name(), why));
    }
    Ok(())
}

/// The same in the words that definitions have for it.
fn check_plain(scope: &Scope, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let wanted = [
        ("UID", options.uid.as_deref(), live.uid()),
        ("ResourceVersion", options.resource_version.as_deref(), live.resource_version()),
    ];
    for (name, wanted, found) in wanted {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let why = format!("Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}");
            return Err(ApiError::conflict(scope.subject(), live.name(), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_others_removed_after_its_mark_is_deleted() {
        let end = |committed, is_marked| {
            let deleted = Deleted { object: json!({"metadata": {"name": "a"}}), gone: true };
            ended(committed, deleted, is_marked).unwrap()
        };
        let clash = |actual| Err(CommitError::Precondition { key: "k".to_owned(), actual });
        assert!(end(Ok(Revision(7)), false).is_some_and(|deleted| deleted.object.resource_version() == "7"));
        assert!(end(clash(None), true).is_some_and(|deleted| deleted.gone));
        // Somebody else's change, or a delete that this one has no part in, is looked at again.
        assert!(end(clash(Some(Revision(8))), true).is_none());
        assert!(end(clash(None), false).is_none());
    }
}
