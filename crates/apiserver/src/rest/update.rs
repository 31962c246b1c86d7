//! Changing objects: a replacement or any other transformation of what is stored, tried again if somebody was faster.

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use serde_json::Value;
use windlass_schema::FieldError;
use windlass_store::{Entry, Write};

use super::{
    commit::{self, Outcome, Transition},
    create, input, ownership, prepare,
    scope::Scope,
    storage, versions,
    view::{Change, View},
    written::Written,
};
use crate::{
    ApiError,
    codec::{Body, read},
    object::Object,
    strategy::{self, Part},
};

/// How often a change is tried again when somebody else was faster.
const TRIES_MAX: usize = 32;

/// What a transformation makes of the stored object.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) object: Value,
    /// Whether the owners of fields are written already, as by an apply.
    pub(crate) owned: bool,
}

/// A transformation of the stored object; `None` if there is none.
pub(crate) trait Transform: Fn(Option<&Value>) -> Result<Changed, ApiError> + Send + Sync {}
impl<F: Fn(Option<&Value>) -> Result<Changed, ApiError> + Send + Sync> Transform for F {}

/// The object after an update.
#[derive(Debug)]
pub(crate) struct Updated {
    pub(crate) written: Written,
    created: bool,
}

impl Updated {
    /// The answer that carries the object.
    pub(super) fn answer(&self, scope: &Scope) -> Result<Response<Body>, ApiError> {
        self.written.answer(scope, if self.created { StatusCode::CREATED } else { StatusCode::OK })
    }
}

/// Answers a PUT.
pub(crate) async fn replace(scope: &Scope, part: Part, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let mut object = input::object(scope, &body)?;
    check_identity(scope, &mut object)?;
    let allow_create = may_create(scope, part);
    let transform = |_: Option<&Value>| Ok(Changed { object: object.clone(), owned: false });
    update(scope, part, allow_create, &transform).await?.answer(scope)
}

/// Whether a change of an object that is not there makes it. The kinds that allow it do so by their status, too.
pub(super) fn may_create(scope: &Scope, part: Part) -> bool {
    matches!(part, Part::Object | Part::Status) && strategy::rules(&scope.kind).create_on_update
}

/// The object in the body must be the one that the path names; its namespace may be left out.
pub(super) fn check_identity(scope: &Scope, object: &mut Value) -> Result<(), ApiError> {
    prepare::check_namespace(scope, object)?;
    let (found, wanted) = (object.name(), scope.request.name.as_str());
    if found == wanted {
        return Ok(());
    }
    if found.is_empty() {
        return Err(nameless(scope));
    }
    let why = format!("the name of the object ({found}) does not match the name on the URL ({wanted})");
    Err(ApiError::bad_request(why))
}

/// The error for an object without a name.
pub(super) fn nameless(scope: &Scope) -> ApiError {
    let why = "was undeterminable: name must be provided";
    ApiError::bad_request(format!("the name of the object ({} based on URL) {why}", scope.request.name))
}

/// Applies `transform` to the object that the path names.
///
/// The future is boxed so that the lifetimes inside of `transform` end here.
pub(crate) fn update<'a>(
    scope: &'a Scope,
    part: Part,
    allow_create: bool,
    transform: &'a dyn Transform,
) -> BoxFuture<'a, Result<Updated, ApiError>> {
    Box::pin(try_update(scope, part, allow_create, transform))
}

async fn try_update(
    scope: &Scope,
    part: Part,
    allow_create: bool,
    transform: &dyn Transform,
) -> Result<Updated, ApiError> {
    let key = storage::key(&scope.kind, scope.namespace(), &scope.request.name);
    for _ in 0..TRIES_MAX {
        let Some(entry) = scope.api.store().snapshot().get(&key).cloned() else {
            if !allow_create {
                return Err(ApiError::not_found(scope.subject(), &scope.request.name));
            }
            match create_by_update(scope, transform).await {
                Err(error) if error.is_already_exists() => continue,
                result => return result,
            }
        };
        if let Some(written) = update_once(scope, part, &key, &entry, transform).await? {
            return Ok(Updated { written, created: false });
        }
    }
    Err(ApiError::modified(scope.subject(), &scope.request.name))
}

async fn create_by_update(scope: &Scope, transform: &dyn Transform) -> Result<Updated, ApiError> {
    let Changed { mut object, owned } = transform(None)?;
    let not_there = || ApiError::not_found(scope.subject(), &scope.request.name);
    if !object.uid().is_empty() || !object.resource_version().is_empty() {
        // Whoever names a version or a uid means an object that existed.
        return Err(not_there());
    }
    // The right to change an object is not the right to make one.
    scope.authorize("create")?;
    object.set_meta("name", scope.request.name.as_str());
    let written = create::create_object(scope, Changed { object, owned }).await?;
    Ok(Updated { written, created: true })
}

/// `None` if somebody else was faster.
async fn update_once(
    scope: &Scope,
    part: Part,
    key: &str,
    entry: &Entry,
    transform: &dyn Transform,
) -> Result<Option<Written>, ApiError> {
    let live = storage::decode(&scope.api, &scope.kind, entry).await?;
    let Changed { mut object, owned } = transform(Some(&live))?;
    check_version(scope, &object, &live)?;
    // Defaults count as said: leaving one out is no change of what is wanted.
    prepare::complete(scope, &mut object)?;
    let view = View::of(scope, part);
    let Change { mut object, live } = view.mutate(scope, Change { object, live }).await?;
    prepare::complete_again(scope, &mut object)?;
    // Only now: what admission changed counts for the generation, too.
    prepare::for_update(scope, part, &mut object, &live)?;
    let _allocation = strategy::allocate(&scope.api, &scope.kind, &mut object, Some(&live)).await?;
    if !owned {
        ownership::update(scope, Some(&live), &mut object)?;
    }
    object.set_meta("resourceVersion", live.resource_version());
    prepare::validate(scope, part, &object, Some(&live))?;
    let Change { object, live } = view.validate(scope, Change { object, live }).await?;
    store(scope, key, entry, object, &live).await
}

/// The client may name the version that it means; some kinds insist on it.
fn check_version(scope: &Scope, object: &Value, live: &Value) -> Result<(), ApiError> {
    let version = object.resource_version();
    let number = version.parse::<u64>();
    if !version.is_empty() && (number.is_err() || version.starts_with('+')) {
        let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(ApiError::unsorted(why));
    }
    match if number == Ok(0) { "" } else { version } {
        "" if strategy::rules(&scope.kind).unconditional_update => Ok(()),
        "" => {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            Err(ApiError::invalid_fields(scope.subject(), live.name(), vec![error]))
        }
        version if version == live.resource_version() => Ok(()),
        _ => Err(ApiError::modified(scope.subject(), live.name())),
    }
}

async fn store(
    scope: &Scope,
    key: &str,
    entry: &Entry,
    mut object: Value,
    live: &Value,
) -> Result<Option<Written>, ApiError> {
    let goes = object.finalizers().is_empty()
        && live.is_deleting()
        && live.meta_integer("deletionGracePeriodSeconds").unwrap_or(0) == 0
        && strategy::may_go(&scope.kind, &object);
    versions::fit_storage(&scope.kind, &mut object);
    windlass_schema::settle(&scope.kind.definition, &mut object);
    if scope.options.dry_run {
        commit::check(scope, Transition { object: &object, old: live })?;
        return Ok(Some(Written::unstored(object)));
    }
    let transition = Transition { object: &object, old: live };
    // Writing an object again moves it to the version that is stored now.
    let is_settled = !versions::is_outdated(&scope.kind, &entry.value) && strategy::is_settled(&scope.kind, entry);
    if object == *live && is_settled && !goes {
        return Ok(Some(Written::unstored(object)));
    }
    let text = if goes { None } else { Some(storage::encode(&scope.api, &scope.kind, &object).await?) };
    let write = match &text {
        Some(text) => Write::update(key, entry.modified, text.clone()),
        None => Write::delete(key, entry.modified),
    };
    let Outcome::Stored(revision) = commit::commit(scope, transition, write).await? else { return Ok(None) };
    scope.api.registry().wrote(&scope.kind, revision);
    Ok(Some(match text {
        Some(text) => Written::stored(object, text, revision),
        None => {
            object.set_meta("resourceVersion", revision.to_string());
            Written::unstored(object)
        }
    }))
}
