//! Creating objects.

use http::{Request, Response, StatusCode};
use serde_json::Value;
use windlass_store::{Entry, Write};

use super::{
    commit::{self, Outcome, Transition},
    input, ownership, prepare,
    scope::Scope,
    storage,
    update::Changed,
    versions,
    written::Written,
};
use crate::{
    ApiError,
    admission::Operation,
    audit,
    codec::{ANSWER_TYPES, Body, Transform, read},
    object::Object,
    reviews,
    strategy::{self, Part},
};

/// How often a made-up name may clash before the client is told.
const GENERATED_NAME_TRIES: usize = 8;

/// Answers a POST to a collection.
pub(crate) async fn create(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let object = Changed { object: input::object(scope, &body)?, owned: false };
    audit::name(&object.object);
    create_object(scope, object).await?.answer(scope, StatusCode::CREATED)
}

/// Stores a new object; a made-up name that is taken is made up again.
pub(crate) async fn create_object(scope: &Scope, new: Changed) -> Result<Written, ApiError> {
    let Changed { object, owned } = new;
    if object.name().is_empty() && !object.meta("generateName").is_empty() {
        for _ in 1..GENERATED_NAME_TRIES {
            match create_once(scope, object.clone(), owned).await {
                Err(error) if error.is_already_exists() => {}
                result => return result,
            }
        }
    }
    create_once(scope, object, owned).await
}

async fn create_once(scope: &Scope, mut object: Value, owned: bool) -> Result<Written, ApiError> {
    let given_name = object.name().to_owned();
    prepare::for_create(scope, &mut object)?;
    prepare::complete(scope, &mut object)?;
    // What admission and the kind's own behaviour add is nobody's.
    if !owned {
        ownership::update(scope, None, &mut object)?;
    }
    let name = object.name().to_owned();
    let mut review = scope.review(Operation::Create, &name, object, Value::Null);
    review.given_name = &given_name;
    scope.mutate(&mut review).await?;
    let mut object = std::mem::take(&mut review.object);
    let said = strategy::prepare_create(&scope.kind, &mut object, &scope.user);
    said.into_iter().for_each(|warning| scope.warn(warning));
    prepare::complete_again(scope, &mut object)?;
    let _allocation = match object.name() {
        // Only what is stored needs an address that is its own.
        "" if scope.options.dry_run => None,
        _ => strategy::allocate(&scope.api, &scope.kind, &mut object, None).await?,
    };
    prepare::validate(scope, Part::Object, &object, None)?;
    review.object = object;
    scope.validate(&mut review).await?;
    insert(scope, review.object).await
}

async fn insert(scope: &Scope, mut object: Value) -> Result<Written, ApiError> {
    let key = storage::key(&scope.kind, scope.namespace(), object.name());
    versions::fit_storage(&scope.kind, &mut object);
    windlass_schema::settle(&scope.kind.definition, &mut object);
    if scope.options.dry_run {
        commit::check(scope, Transition { object: &object, old: &Value::Null })?;
        return match scope.api.store().snapshot().get(&key) {
            Some(entry) => Err(taken(scope, object.name(), Some(entry))),
            None => Ok(Written::unstored(object)),
        };
    }
    if object.resource_version().parse().is_ok_and(|version: u64| version != 0) {
        return Err(ApiError::unsorted("resourceVersion should not be set on objects to be created"));
    }
    let transition = Transition { object: &object, old: &Value::Null };
    let text = storage::encode(&scope.api, &scope.kind, &object).await?;
    match commit::commit(scope, transition, Write::create(&key, text.clone())).await? {
        Outcome::Stored(revision) => {
            scope.api.registry().wrote(&scope.kind, revision);
            Ok(Written::stored(object, text, revision))
        }
        Outcome::Clash => Err(taken(scope, object.name(), scope.api.store().snapshot().get(&key))),
    }
}

/// The name is taken; maybe not for long.
fn taken(scope: &Scope, name: &str, entry: Option<&Entry>) -> ApiError {
    let mut error = ApiError::already_exists(scope.subject(), name);
    let existing: Option<Value> = entry.and_then(|entry| serde_json::from_slice(&entry.value).ok());
    if existing.is_some_and(|existing| existing.is_deleting()) {
        error.message = format!("object is being deleted: {}", error.message);
    }
    error
}

/// Answers a review: an object that is judged and given back, but not stored.
pub(crate) async fn review(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let object = input::object(scope, &body)?;
    if scope.accept.transform != Transform::None {
        return Err(ApiError::not_acceptable(&ANSWER_TYPES));
    }
    let answered = reviews::answer(scope.api.auth(), &scope.user, &scope.kind.plural, scope.namespace(), object)?;
    scope.answer(StatusCode::CREATED, &answered)
}
