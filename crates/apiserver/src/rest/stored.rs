//! Answers made of objects just as they are stored: nothing is read, only their versions are put in.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use windlass_store::Revision;

use super::{
    list::{self, Page},
    options::ListOptions,
    render,
    scope::Scope,
    splice::{opened_with_version, with_version},
    versions::is_stored_as_shown,
};
use crate::{
    ApiError,
    codec::{Body, BoxError, Form, Transform, respond_text},
};

const JSON: &str = "application/json";
/// How much of a list is sent in one piece.
const PIECE_BYTES: usize = 64 << 10;
/// What a version adds to an object.
const VERSION_BYTES: usize = 48;

/// An object and the commit that wrote it.
type Stored = (Bytes, Revision);

/// Whether the client wants objects in the form in which they are stored.
fn is_wanted(scope: &Scope) -> bool {
    let accept = &scope.accept;
    accept.transform == Transform::None && accept.form == Form::Json && !accept.pretty
}

/// The answer that carries one stored object; `None` if it must be read for that.
pub(super) fn object(scope: &Scope, status: StatusCode, stored: &[u8], revision: Revision) -> Option<Response<Body>> {
    if !is_wanted(scope) || !is_stored_as_shown(&scope.kind, revision) {
        return None;
    }
    let mut text = Vec::with_capacity(stored.len() + VERSION_BYTES);
    let head = head(scope);
    let is_written = if scope.kind.is_builtin() && stored.starts_with(&head) {
        // As from Kubernetes the kind comes first, so that clients who decode as they read know at once what they read.
        let opening =
            format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", scope.kind.kind().kind, scope.kind.api_version());
        opened_with_version(stored, (head.len(), opening.as_bytes()), revision, &mut text)
    } else {
        with_version(stored, revision, &mut text)
    };
    is_written.then(|| respond_text(status, JSON, text.into(), &scope.accept))
}

/// The answer to a list of everything; `None` if objects must be read for that.
pub(super) async fn list(scope: &Scope, options: &ListOptions) -> Result<Option<Response<Body>>, ApiError> {
    let selects = !options.labels.is_empty() || !options.fields.is_empty();
    if !is_wanted(scope) || selects {
        return Ok(None);
    }
    let page = list::page_of(scope, options, |entry| {
        is_stored_as_shown(&scope.kind, entry.modified).then(|| (entry.value.clone(), entry.modified))
    });
    let Some(page) = page.await? else { return Ok(None) };
    // Items of built-in lists do not repeat their kind, so that it is cut out.
    let head = scope.kind.is_builtin().then(|| head(scope));
    if head.as_ref().is_some_and(|head| !page.items.iter().all(|(bytes, _)| bytes.starts_with(head))) {
        return Ok(None);
    }
    Ok(Some(respond(scope, page, head)))
}

/// What all stored objects of a built-in kind begin with.
fn head(scope: &Scope) -> Vec<u8> {
    let (api_version, kind) = (scope.kind.api_version(), &scope.kind.kind().kind);
    format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",").into_bytes()
}

fn respond(scope: &Scope, page: Page<Stored>, head: Option<Vec<u8>>) -> Response<Body> {
    let (list_kind, api_version) = (&scope.kind.list_kind, scope.kind.api_version());
    let metadata = render::whole(scope, page.metadata());
    let opening =
        format!("{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[");
    let pieces = Pieces { opening: Some(opening), items: page.items.into(), head, is_first: true };
    if scope.accept.gzip {
        let mut text = BytesMut::new();
        pieces.for_each(|piece| text.put(piece));
        return respond_text(StatusCode::OK, JSON, text.freeze(), &scope.accept);
    }
    let frames = stream::iter(pieces.map(|piece| Ok::<_, BoxError>(Frame::data(piece))));
    let mut response = respond_text(StatusCode::OK, JSON, Bytes::new(), &scope.accept);
    *response.body_mut() = StreamBody::new(frames).boxed_unsync();
    response
}

/// The text of a list, piece by piece: it is never in memory as a whole.
struct Pieces {
    opening: Option<String>,
    items: VecDeque<Stored>,
    /// What is cut from the beginning of every item.
    head: Option<Vec<u8>>,
    is_first: bool,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut piece = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 2));
        if let Some(opening) = self.opening.take() {
            piece.extend_from_slice(opening.as_bytes());
        } else if self.items.is_empty() {
            return None;
        }
        while piece.len() < PIECE_BYTES {
            let Some((bytes, revision)) = self.items.pop_front() else { break };
            if !std::mem::take(&mut self.is_first) {
                piece.push(b',');
            }
            let is_written = match &self.head {
                Some(head) => opened_with_version(&bytes, (head.len(), b"{"), revision, &mut piece),
                None => with_version(&bytes, revision, &mut piece),
            };
            debug_assert!(is_written, "every stored object has metadata");
        }
        if self.items.is_empty() {
            piece.extend_from_slice(b"]}");
        }
        Some(piece.into())
    }
}
