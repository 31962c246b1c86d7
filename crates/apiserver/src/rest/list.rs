//! Listing objects: selectors, pages, and the revision that the list shows.

use std::{sync::Arc, time::Duration};

use http::{Response, StatusCode};
use serde_json::{Value, json};
use windlass_store::{Entry, Revision, Snapshot};

use super::{
    continue_token::ContinueToken,
    options::{ListOptions, Match},
    render,
    scope::Scope,
    storage, stored,
};
use crate::{
    Api, ApiError, Details,
    codec::{Body, respond},
};

/// How long a list waits for a revision that is about to come.
const REVISION_WAIT: Duration = Duration::from_secs(3);

/// How many objects are read at once.
const CHUNK_MAX: usize = 250;

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
    without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
    Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between \
    the time the first chunk was returned and now may show up in the list.";

/// Part of the objects of a kind.
#[derive(Debug)]
pub(crate) struct Page<T = Value> {
    pub(crate) items: Vec<T>,
    pub(crate) revision: Revision,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

/// Answers a GET of a collection.
pub(crate) async fn list(scope: &Scope) -> Result<Response<Body>, ApiError> {
    let options = ListOptions::new(&scope.query, false)?;
    if let Some(response) = stored::list(scope, &options).await? {
        return Ok(response);
    }
    let page = page(scope, &options).await?;
    let metadata = page.metadata();
    let value = render::list(scope, page.items, metadata)?;
    Ok(respond(StatusCode::OK, &value, &scope.accept))
}

impl<T> Page<T> {
    /// The metadata of the list.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(token) = &self.continue_token {
            metadata["continue"] = Value::from(token.as_str());
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// The objects that the options select.
pub(crate) async fn page(scope: &Scope, options: &ListOptions) -> Result<Page, ApiError> {
    options.fields.check(&scope.kind)?;
    let range = Range::new(scope, options).await?;
    let mut items = Vec::new();
    let mut rest = range.entries();
    let mut last = None;
    loop {
        let missing = options.limit.map_or(CHUNK_MAX, |limit| (limit - items.len()).min(CHUNK_MAX));
        let chunk: Vec<_> = rest.by_ref().take(missing).collect();
        let Some((key, _)) = chunk.last() else { break };
        let entries = chunk.iter().map(|(_, entry)| (&entry.value, entry.modified));
        let objects = storage::decode_all(&scope.api, &scope.kind, entries).await?.into_iter();
        items.extend(objects.filter(|object| options.labels.matches(object) && options.fields.matches(object)));
        if options.limit.is_some_and(|limit| items.len() >= limit) {
            last = Some(&***key);
            break;
        }
    }
    let remaining = if last.is_some() { rest.count() } else { 0 };
    let counted = options.labels.is_empty() && options.fields.is_empty();
    Ok(range.page(items, last, remaining, counted))
}

/// The objects that a list without selectors shows, as `take` has them; `None` once it does not take one.
pub(super) async fn page_of<T>(
    scope: &Scope,
    options: &ListOptions,
    take: impl Fn(&Entry) -> Option<T>,
) -> Result<Option<Page<T>>, ApiError> {
    let range = Range::new(scope, options).await?;
    let (mut items, mut last) = (Vec::new(), None);
    let mut rest = range.entries();
    for (key, entry) in rest.by_ref() {
        let Some(item) = take(entry) else { return Ok(None) };
        items.push(item);
        if options.limit.is_some_and(|limit| items.len() >= limit) {
            last = Some(&**key);
            break;
        }
    }
    let remaining = if last.is_some() { rest.count() } else { 0 };
    Ok(Some(range.page(items, last, remaining, true)))
}

/// What a list goes over.
struct Range {
    snapshot: Snapshot,
    prefix: String,
    after: Option<String>,
}

impl Range {
    async fn new(scope: &Scope, options: &ListOptions) -> Result<Self, ApiError> {
        let prefix = storage::prefix(&scope.kind, scope.namespace());
        let token = options.continue_token.as_deref().map(ContinueToken::decode).transpose()?;
        let snapshot = snapshot(&scope.api, options, token.as_ref()).await?;
        let after = token.map(|token| format!("{prefix}{}", token.after));
        Ok(Self { snapshot, prefix, after })
    }

    fn entries(&self) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.snapshot.range(&self.prefix, self.after.as_deref())
    }

    /// The page that ends with the key `last`, before `remaining` others.
    fn page<T>(&self, items: Vec<T>, last: Option<&str>, remaining: usize, counted: bool) -> Page<T> {
        let revision = self.snapshot.revision();
        let last = last.and_then(|last| last.strip_prefix(self.prefix.as_str())).filter(|_| remaining > 0);
        let continue_token = last.map(|last| {
            let revision = i64::try_from(revision.0).expect("revisions count commits");
            ContinueToken::new(revision, last).encode()
        });
        Page { items, revision, continue_token, remaining: (counted && remaining > 0).then_some(remaining) }
    }
}

/// The state that the list shows.
async fn snapshot(api: &Api, options: &ListOptions, token: Option<&ContinueToken>) -> Result<Snapshot, ApiError> {
    if let Some(token) = token {
        let Ok(revision) = u64::try_from(token.revision) else { return Ok(api.store().snapshot()) };
        return api.store().snapshot_at(Revision(revision)).map_err(|_| {
            let mut error = ApiError::expired(TOO_OLD);
            let continue_token = Some(ContinueToken::new(-1, &token.after).encode());
            error.details = Some(Box::new(Details { continue_token, ..Details::default() }));
            error
        });
    }
    let Some(revision) = options.revision.filter(|revision| *revision > 0) else { return Ok(api.store().snapshot()) };
    let present = wait_for(api, revision).await?;
    let exact = match options.revision_match {
        Some(found) => found == Match::Exact,
        None => options.limit.is_some(),
    };
    if !exact {
        return Ok(present);
    }
    let too_old = |_| ApiError::expired("The resourceVersion for the provided list is too old.");
    api.store().snapshot_at(Revision(revision)).map_err(too_old)
}

/// The present state, once it has come to `revision`.
pub(crate) async fn wait_for(api: &Api, revision: u64) -> Result<Snapshot, ApiError> {
    let present = api.store().snapshot();
    if present.revision().0 >= revision {
        return Ok(present);
    }
    let mut watch = api.store().watch("", present.revision()).map_err(ApiError::internal)?;
    let reached = async {
        while let Ok(event) = watch.next().await {
            if event.revision.0 >= revision {
                break;
            }
        }
    };
    // Whether it was reached or not is read from the store.
    let _ = tokio::time::timeout(REVISION_WAIT, reached).await;
    let present = api.store().snapshot();
    match present.revision().0 {
        current if current < revision => Err(ApiError::revision_too_large(revision, current)),
        _ => Ok(present),
    }
}
