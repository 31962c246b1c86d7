//! Watching objects: a stream of events, in the order of the commits, without gaps.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use rand::Rng;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_schema::protobuf;
use windlass_store::{Entry, Event, Revision, Snapshot, Watch, WatchError};

use super::{
    list::wait_for,
    options::ListOptions,
    render,
    scope::Scope,
    signals::{Signal, Signals},
    splice::with_version,
    storage::{decode, decode_all, decode_at, prefix},
    versions::is_stored_as_shown,
};
use crate::{
    ApiError,
    codec::{Body, BoxError, Form, Transform},
    registry::Served,
};

/// How often a client that wants bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// A watch whose client sets no limit ends after this, and up to as much again.
const TIMEOUT_MIN: Duration = Duration::from_secs(30 * 60);
/// What an event adds to its object.
const FRAME_BYTES: usize = 96;
/// How many events are sent in one piece.
const BATCH_MAX: usize = 256;
/// After how many pieces of events a watch looks at what else there is.
const TURNS_PER_SIGNAL: u32 = 32;

/// Answers a GET of a collection with `watch`.
pub(crate) async fn watch(scope: &Arc<Scope>) -> Result<Response<Body>, ApiError> {
    let mut options = ListOptions::new(&scope.query, true)?;
    if options.fields.is_empty() && !scope.request.selected_name.is_empty() {
        options.fields.require_name(&scope.request.selected_name);
    }
    options.fields.check(&scope.kind)?;
    let stream = match Stream::start(scope, options).await {
        Ok(stream) => stream,
        Err(error) if error.reason == "Expired" => Stream::failed(scope, &error)?,
        Err(error) => return Err(error),
    };
    let frames = futures::stream::unfold(stream, |mut stream| async move {
        let chunk = stream.chunk().await?;
        Some((Ok::<_, BoxError>(Frame::data(chunk)), stream))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let content_type = match scope.accept.form {
        Form::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        Form::Json | Form::Yaml => "application/json",
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}

/// The state of one watch.
struct Stream {
    scope: Arc<Scope>,
    options: ListOptions,
    watch: Watch,
    /// Events that were not sent yet.
    pending: VecDeque<Bytes>,
    /// The kind as it is served now; a definition may change while the watch goes on.
    kind: Served,
    /// Whether no table with headings was sent yet.
    first: bool,
    deadline: Instant,
    next_bookmark: Instant,
    signals: Signals,
    turns: u32,
    is_over: bool,
}

/// Why a watch goes on.
enum Cause {
    Event(Result<Arc<Event>, WatchError>),
    Signal(Signal),
}

impl Stream {
    async fn start(scope: &Arc<Scope>, options: ListOptions) -> Result<Self, ApiError> {
        let key_prefix = prefix(&scope.kind, scope.namespace());
        let store = scope.api.store();
        let from_present = options.initial_events.is_some() || matches!(options.revision, None | Some(0));
        if !from_present {
            let after = Revision(options.revision.unwrap_or_default());
            let watch = store.watch(&key_prefix, after).map_err(|compacted| too_old(after, compacted.oldest))?;
            return Ok(Self::new(scope, options, watch));
        }
        let snapshot = wait_for(&scope.api, options.revision.unwrap_or_default()).await?;
        let watch = store.watch(&key_prefix, snapshot.revision()).map_err(ApiError::internal)?;
        let mut stream = Self::new(scope, options, watch);
        if stream.options.initial_events != Some(false) {
            stream.add_present(&snapshot, &key_prefix).await?;
        }
        Ok(stream)
    }

    fn new(scope: &Arc<Scope>, options: ListOptions, watch: Watch) -> Self {
        let now = Instant::now();
        let timeout = match options.timeout_seconds {
            Some(seconds) => Duration::from_secs(seconds),
            None => TIMEOUT_MIN.mul_f64(1.0 + rand::rng().random::<f64>()),
        };
        let (deadline, next_bookmark) = (now + timeout, now + BOOKMARK_INTERVAL);
        Self {
            scope: Arc::clone(scope),
            kind: scope.kind.clone(),
            options,
            watch,
            pending: VecDeque::new(),
            first: true,
            deadline,
            next_bookmark,
            signals: Signals::new(&scope.api, deadline.min(next_bookmark)),
            turns: 0,
            is_over: false,
        }
    }

    /// A stream that only tells why there is none.
    fn failed(scope: &Arc<Scope>, error: &ApiError) -> Result<Self, ApiError> {
        let store = scope.api.store();
        let watch = store.watch("/", store.revision()).map_err(ApiError::internal)?;
        let mut stream = Self::new(scope, ListOptions::default(), watch);
        stream.fail(error);
        Ok(stream)
    }

    /// Everything that is there now, and the mark after it for clients that asked for it.
    async fn add_present(&mut self, snapshot: &Snapshot, key_prefix: &str) -> Result<(), ApiError> {
        for (_, entry) in snapshot.range(key_prefix, None) {
            if !self.pass_entry("ADDED", entry, entry.modified) {
                self.pending.clear();
                self.add_read(snapshot, key_prefix).await?;
                break;
            }
        }
        if self.options.initial_events == Some(true) && self.options.bookmarks {
            let mut bookmark = self.bookmark(snapshot.revision());
            bookmark["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
            self.push("BOOKMARK", bookmark)?;
        }
        Ok(())
    }

    /// Everything that is there now, read and converted together.
    async fn add_read(&mut self, snapshot: &Snapshot, key_prefix: &str) -> Result<(), ApiError> {
        let entries = snapshot.range(key_prefix, None).map(|(_, entry)| (&entry.value, entry.modified));
        for object in decode_all(&self.scope.api, &self.kind, entries).await? {
            if self.selects(&object) {
                self.push("ADDED", object)?;
            }
        }
        Ok(())
    }

    /// The next piece of the stream; `None` when it is over.
    async fn chunk(&mut self) -> Option<Bytes> {
        while self.pending.is_empty() && !self.is_over {
            match std::future::poll_fn(|context| self.poll_cause(context)).await {
                Cause::Event(event) => self.take(event).await,
                Cause::Signal(Signal::Alarm) => self.ring(),
                Cause::Signal(Signal::Kinds) => self.follow_kind(),
                Cause::Signal(Signal::Shutdown) => self.is_over = true,
            }
        }
        if self.pending.len() == 1 {
            return self.pending.pop_front();
        }
        let mut chunk = BytesMut::with_capacity(self.pending.iter().map(Bytes::len).sum());
        self.pending.drain(..).for_each(|frame| chunk.put(frame));
        (!chunk.is_empty()).then(|| chunk.freeze())
    }

    /// Events come first, but however many there are, the rest gets its turn.
    fn poll_cause(&mut self, context: &mut Context<'_>) -> Poll<Cause> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(TURNS_PER_SIGNAL)
            && let Poll::Ready(signal) = self.signals.poll(context)
        {
            return Poll::Ready(Cause::Signal(signal));
        }
        if let Poll::Ready(event) = self.watch.poll_next(context) {
            return Poll::Ready(Cause::Event(event));
        }
        self.signals.poll(context).map(Cause::Signal)
    }

    /// Sends a bookmark, and sets the alarm for what comes next.
    fn ring(&mut self) {
        self.add_bookmark();
        self.is_over |= Instant::now() >= self.deadline;
        self.signals.set_alarm(self.deadline.min(self.next_bookmark));
    }

    async fn take(&mut self, event: Result<Arc<Event>, WatchError>) {
        let mut next = Some(event);
        while let Some(event) = next {
            let result = match event {
                Ok(event) => self.follow(&event).await,
                Err(WatchError::Lagged) => {
                    Err(ApiError::expired("the watch fell too far behind; list again and watch from there"))
                }
                Err(WatchError::Closed) => {
                    self.is_over = true;
                    return;
                }
            };
            if let Err(error) = result {
                self.fail(&error);
                return;
            }
            next = if self.pending.len() < BATCH_MAX { self.watch.try_next() } else { None };
        }
    }

    /// The event without reading the object; `false` if that cannot be.
    fn pass(&mut self, event: &Event) -> bool {
        match (&event.previous, &event.entry) {
            (None, Some(entry)) => self.pass_entry("ADDED", entry, event.revision),
            (Some(_), Some(entry)) => self.pass_entry("MODIFIED", entry, event.revision),
            (Some(entry), None) => self.pass_entry("DELETED", entry, event.revision),
            (None, None) => true,
        }
    }

    /// As [`Stream::pass`], for an object that is there.
    fn pass_entry(&mut self, event_type: &str, entry: &Entry, revision: Revision) -> bool {
        let accept = &self.scope.accept;
        let is_wanted = accept.transform == Transform::None && accept.form != Form::Protobuf && self.selects_all();
        if !is_wanted || !is_stored_as_shown(&self.kind, entry.modified) {
            return false;
        }
        let mut text = Vec::with_capacity(entry.value.len() + FRAME_BYTES);
        text.extend_from_slice(opening(event_type).as_bytes());
        let is_passed = with_version(&entry.value, revision, &mut text);
        if is_passed {
            self.pending.push_back(closed(text));
        }
        is_passed
    }

    /// Turns a change into the event that this client sees: objects enter and leave what it selects.
    async fn follow(&mut self, event: &Event) -> Result<(), ApiError> {
        if self.pass(event) {
            return Ok(());
        }
        let scope = Arc::clone(&self.scope);
        let after = match &event.entry {
            Some(entry) => Some(decode(&scope.api, &self.kind, entry).await?).filter(|object| self.selects(object)),
            None => None,
        };
        // Where everything is selected, what an object was before does not matter.
        let after = match after {
            Some(object) if self.selects_all() => {
                return self.push(if event.previous.is_some() { "MODIFIED" } else { "ADDED" }, object);
            }
            after => after,
        };
        let before = match &event.previous {
            Some(entry) => {
                let object = decode_at(&scope.api, &self.kind, &entry.value, event.revision).await?;
                Some(object).filter(|object| self.selects(object))
            }
            None => None,
        };
        match (before, after) {
            (None, None) => Ok(()),
            (None, Some(object)) => self.push("ADDED", object),
            (Some(_), Some(object)) => self.push("MODIFIED", object),
            (Some(object), None) => self.push("DELETED", object),
        }
    }

    fn selects_all(&self) -> bool {
        self.options.labels.is_empty() && self.options.fields.is_empty()
    }

    /// A kind that is no longer served ends the watch; clients find out why when they list again.
    fn follow_kind(&mut self) {
        match self.scope.api.registry().lookup(&self.kind.group, &self.kind.version, &self.kind.plural) {
            Some(kind) => self.kind = kind,
            None => self.is_over = true,
        }
    }

    fn selects(&self, object: &Value) -> bool {
        self.options.labels.matches(object) && self.options.fields.matches(object)
    }

    fn push(&mut self, event_type: &str, object: Value) -> Result<(), ApiError> {
        let object = render::event(&self.scope, object, std::mem::take(&mut self.first))?;
        self.add(event_type, &object);
        Ok(())
    }

    fn add(&mut self, event_type: &str, object: &Value) {
        self.pending.push_back(frame(self.scope.accept.form, event_type, object));
    }

    fn fail(&mut self, error: &ApiError) {
        self.add("ERROR", &error.status());
        self.is_over = true;
    }

    fn add_bookmark(&mut self) {
        self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
        if let Some(revision) = self.watch.progress().filter(|_| self.options.bookmarks) {
            let bookmark = self.bookmark(revision);
            if let Err(error) = self.push("BOOKMARK", bookmark) {
                self.fail(&error);
            }
        }
    }

    /// An object with nothing but a version: for built-in kinds, what Go makes of one.
    fn bookmark(&self, revision: Revision) -> Value {
        let kind = &self.scope.kind;
        let mut bookmark = json!({
            "kind": kind.kind().kind,
            "apiVersion": kind.api_version(),
            "metadata": { "resourceVersion": revision.to_string() },
        });
        if kind.is_builtin()
            && let Ok(conformed) = windlass_schema::conform(&kind.definition, bookmark.clone())
        {
            bookmark = conformed.object;
        }
        bookmark
    }
}

fn frame(form: Form, event_type: &str, object: &Value) -> Bytes {
    if form == Form::Protobuf {
        return protobuf_frame(event_type, object);
    }
    let mut text = opening(event_type).into_bytes();
    serde_json::to_writer(&mut text, object).expect("a JSON value can be written");
    closed(text)
}

fn protobuf_frame(event_type: &str, object: &Value) -> Bytes {
    match protobuf::encode(object) {
        Ok(bytes) => protobuf::watch_frame(event_type, &bytes).into(),
        Err(error) => {
            let status = protobuf::encode(&ApiError::internal(error).status()).unwrap_or_default();
            protobuf::watch_frame("ERROR", &status).into()
        }
    }
}

fn opening(event_type: &str) -> String {
    format!("{{\"type\":\"{event_type}\",\"object\":")
}

fn closed(mut text: Vec<u8>) -> Bytes {
    text.extend_from_slice(b"}\n");
    text.into()
}

fn too_old(wanted: Revision, oldest: Revision) -> ApiError {
    ApiError::expired(format!("too old resource version: {wanted} ({oldest})"))
}
