//! A view of the API in which writes are seen and nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;
use windlass_runtime::tap::{Call, Intercept, Next};

use super::answer::{self, Refusal};
use super::local::{Local, Schemas};
use super::place::{Entry, Place, meta, unless_gone};
use super::selection::Selection;

/// Versions of planned objects begin here: above all that a cluster gives, so that caches take them for newer.
const FIRST_VERSION: u64 = 1 << 62;
/// What acts on a Pod's processes, or through them, whatever its method is.
const ACTS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];
/// Groups whose objects are questions: nothing is stored.
const QUESTIONS: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];

/// The view; clones are the same.
#[derive(Clone)]
pub(super) struct Overlay(Arc<Inner>);

struct Inner {
    /// The way to the cluster.
    client: Client,
    schemas: Schemas,
    state: Mutex<State>,
    /// Held during a write: each sees what the one before it left.
    turn: tokio::sync::Mutex<()>,
}

/// What was written.
#[derive(Default)]
pub(super) struct State {
    pub(super) entries: BTreeMap<Place, Entry>,
    /// The events that would be recorded, in their order.
    pub(super) said: Vec<Value>,
    /// Calls that change something other than an object.
    pub(super) calls: Vec<String>,
    /// Writes that the API would refuse.
    pub(super) refused: Vec<String>,
    /// The collections that were read, as paths.
    pub(super) listed: BTreeSet<String>,
    /// How many versions were given.
    versions: u64,
    /// Whether it is the person who writes.
    asking: bool,
}

impl Overlay {
    /// A view of what `client` sees.
    pub(super) fn new(client: Client) -> Self {
        let schemas = Schemas::new(client.clone());
        Self(Arc::new(Inner { client, schemas, state: Mutex::default(), turn: tokio::sync::Mutex::default() }))
    }

    /// Stands in the way of a tap's calls.
    pub(super) fn intercept(&self) -> Intercept {
        let overlay = self.clone();
        Arc::new(move |call, request, next| {
            let (overlay, call) = (overlay.clone(), call.clone());
            Box::pin(async move { overlay.answer(&call, request, next).await })
        })
    }

    /// Whether later writes are what the person asks for.
    pub(super) fn asking(&self, asking: bool) {
        self.state().asking = asking;
    }

    /// What was written.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no code that can panic runs under this lock")
    }

    async fn answer(self, call: &Call, request: Request<Body>, next: Next) -> Result<Response<Body>, BoxError> {
        if ACTS.contains(&call.subresource.split('/').next().unwrap_or_default()) {
            let what = format!("{} {}/{}", call.verb, call.resource, call.subresource);
            return Ok(Refusal::beyond(format!("a plan does not {what}")).response());
        }
        match call.verb {
            "get" if !call.resource.is_empty() => self.get(call, request, next).await,
            "list" => self.list(call, request, next).await,
            "create" if QUESTIONS.contains(&call.group.as_str()) => next(request).await,
            "watch" | "get" => next(request).await,
            _ if call.is_write() => self.write(call, request).await,
            verb => Ok(Refusal::beyond(format!("a plan does not {verb}")).response()),
        }
    }

    async fn get(&self, call: &Call, request: Request<Body>, next: Next) -> Result<Response<Body>, BoxError> {
        let entry = Place::of(call).and_then(|place| self.state().entries.get(&place).cloned());
        Ok(match (entry, call.subresource.as_str()) {
            (None, _) => return next(request).await,
            (Some(Entry { now: Some(object), .. }), "" | "status") => answer::object(StatusCode::OK, &object),
            (Some(Entry { now: Some(_), .. }), _) => beyond(call),
            (Some(Entry { now: None, .. }), _) => Refusal::missing(call).response(),
        })
    }

    async fn list(&self, call: &Call, request: Request<Body>, next: Next) -> Result<Response<Body>, BoxError> {
        let query = request.uri().query().map(str::to_owned);
        let is_first = !query.as_deref().is_some_and(|query| query.contains("continue="));
        let path = request.uri().path().to_owned();
        let (code, mut list) = answer::read(next(request).await?).await?;
        if code.is_success() && list["items"].is_array() {
            self.revise(call, &Selection::of(query.as_deref()), is_first, &mut list);
            self.state().listed.insert(path);
        }
        Ok(answer::object(code, &list))
    }

    /// Takes out of a list what is planned to be otherwise, and puts in how it would be.
    fn revise(&self, call: &Call, selection: &Selection, is_first: bool, list: &mut Value) {
        let state = self.state();
        let in_list: Vec<_> = state.entries.iter().filter(|(place, _)| place.is_in(call)).collect();
        let is_partial = list["kind"] == "PartialObjectMetadataList";
        let Some(items) = list["items"].as_array_mut() else { return };
        items.retain(|item| {
            !in_list.iter().any(|(place, _)| {
                Some(place.name.as_str()) == meta(item, "name") && place.namespace.as_deref() == meta(item, "namespace")
            })
        });
        if is_first {
            let planned = in_list.iter().filter_map(|(_, entry)| entry.now.as_ref()).filter(|now| selection.has(now));
            items.extend(planned.map(|now| if is_partial { partial(now) } else { now.clone() }));
        }
    }

    async fn write(&self, call: &Call, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let _turn = self.0.turn.lock().await;
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        if call.resource == "events" {
            return Ok(self.say(&body));
        }
        if call.verb == "deletecollection" {
            return Ok(beyond(call));
        }
        let place = Place::of(call).or_else(|| Place::in_body(call, &body));
        let entry = place.as_ref().and_then(|place| self.state().entries.get(place).cloned());
        let response = match entry.zip(place) {
            Some((entry, place)) => {
                let local = Local { call, parts: &parts, body: &body, schemas: &self.0.schemas };
                self.rewrite(&local, place, entry).await?
            }
            None => self.rehearse(call, parts, body).await?,
        };
        if !response.status().is_success() {
            return self.refuse(call, response).await;
        }
        Ok(response)
    }

    /// The first write to an object: the cluster says what would come of it.
    async fn rehearse(&self, call: &Call, parts: Parts, body: Vec<u8>) -> Result<Response<Body>, BoxError> {
        let before = match call.name {
            Some(_) => self.live(call, &parts.uri).await?,
            None => None,
        };
        let is_rehearsal = is_dry_run(call, &parts.uri, &body);
        let body = if is_rehearsal { body } else { with_dry_run_inside(call, body)? };
        let mut request = Request::from_parts(parts, Body::from(body));
        if !is_rehearsal {
            *request.uri_mut() = with_dry_run(request.uri())?;
        }
        let (code, result) = answer::read(self.0.client.send(request).await?).await?;
        if !code.is_success() || is_rehearsal {
            return Ok(answer::object(code, &result));
        }
        let now = match (call.verb, call.subresource.as_str()) {
            ("delete", "") => held(&result),
            (_, "" | "status") => unless_gone(result.clone()),
            (_, "eviction") => None,
            (_, "scale") => before.clone().map(|mut object| {
                object["spec"]["replicas"] = result["spec"]["replicas"].clone();
                object
            }),
            _ => {
                self.state().calls.push(title(call));
                return Ok(answer::object(code, &result));
            }
        };
        if let (Some(before), Some(now)) = (&before, &now)
            && windlass_merge::managed::is_same(before, now)
        {
            return Ok(answer::object(code, &result));
        }
        let is_object = matches!(call.subresource.as_str(), "" | "status") && result["kind"] != "Status";
        let name = meta(&result, "name").or(call.name.as_deref()).unwrap_or_default();
        let now = self.keep(Place::named(call, name), before, now);
        if call.verb == "delete" && now.is_none() {
            let uid = meta(&result, "uid").or(result["details"]["uid"].as_str());
            return Ok(answer::deleted(name, uid));
        }
        Ok(answer::object(code, now.as_ref().filter(|_| is_object).unwrap_or(&result)))
    }

    /// A later write to an object: the cluster does not know what it has become.
    async fn rewrite(&self, local: &Local<'_>, place: Place, entry: Entry) -> Result<Response<Body>, BoxError> {
        let mut made = match local.write(entry.now.as_ref()).await? {
            Ok(made) => made,
            Err(refusal) => return Ok(refusal.response()),
        };
        let (name, mut now) = (place.name.clone(), unless_gone(made.clone()));
        if !is_dry_run(local.call, &local.parts.uri, local.body) {
            now = self.keep(place, entry.before, now);
        }
        Ok(match now {
            Some(now) => answer::object(StatusCode::OK, &now),
            None if local.call.verb == "delete" => answer::deleted(&name, meta(&made, "uid")),
            // A patch that takes the last finalizer away is answered with what it made.
            None => {
                self.stamp(&mut made);
                answer::object(StatusCode::OK, &made)
            }
        })
    }

    /// Gives an object the next version, and what only the cluster would give it.
    fn stamp(&self, object: &mut Value) {
        let mut state = self.state();
        state.versions += 1;
        let version = state.versions;
        object["metadata"]["resourceVersion"] = (FIRST_VERSION + version).to_string().into();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("00000000-0000-4000-8000-{version:012}").into();
        }
    }

    /// Remembers what became of an object; it gets the next version, and what only the cluster would give it.
    fn keep(&self, place: Place, before: Option<Value>, mut now: Option<Value>) -> Option<Value> {
        if let Some(object) = &mut now {
            self.stamp(object);
        }
        let mut state = self.state();
        let asked = state.asking || state.entries.get(&place).is_some_and(|entry| entry.asked);
        state.entries.insert(place, Entry { before, now: now.clone(), asked });
        now
    }

    fn say(&self, body: &[u8]) -> Response<Body> {
        let event: Value = serde_json::from_slice(body).unwrap_or_default();
        // A repetition is sent as a patch of its count: it has no message.
        if event["message"].is_string() {
            self.state().said.push(event.clone());
        }
        answer::object(StatusCode::OK, &event)
    }

    /// The object that a call names, as it is in the cluster.
    async fn live(&self, call: &Call, uri: &Uri) -> Result<Option<Value>, BoxError> {
        let path = uri.path().strip_suffix(&format!("/{}", call.subresource)).unwrap_or(uri.path());
        let request = Request::builder().method(Method::GET).uri(path).body(Body::empty())?;
        let (code, object) = answer::read(self.0.client.send(request).await?).await?;
        match code {
            StatusCode::NOT_FOUND => Ok(None),
            code if code.is_success() => Ok(Some(object)),
            code => {
                Err(format!("cannot read {path}: {code}: {}", object["message"].as_str().unwrap_or_default()).into())
            }
        }
    }

    async fn refuse(&self, call: &Call, response: Response<Body>) -> Result<Response<Body>, BoxError> {
        let (code, status) = answer::read(response).await?;
        let message = status["message"].as_str().unwrap_or_default();
        self.state().refused.push(format!("{}: {message}", title(call)));
        Ok(answer::object(code, &status))
    }
}

/// What a deletion leaves: an object that something holds, or nothing. Dependents are taken to go.
fn held(result: &Value) -> Option<Value> {
    let mut finalizers = result["metadata"]["finalizers"].as_array().into_iter().flatten();
    let is_held = finalizers.any(|finalizer| finalizer != "foregroundDeletion");
    is_held.then(|| result.clone())
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn title(call: &Call) -> String {
    let name = call.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let below = if call.subresource.is_empty() { String::new() } else { format!("/{}", call.subresource) };
    format!("{} {}{below}{name}", call.verb, call.resource)
}

fn beyond(call: &Call) -> Response<Body> {
    Refusal::beyond(format!("a plan cannot foresee what comes of {}", title(call))).response()
}

/// Whether a call is a dry run by itself. Options of a deletion are in its body, and a body silences the query.
fn is_dry_run(call: &Call, uri: &Uri, body: &[u8]) -> bool {
    match deletion_options(call, body) {
        Some(options) => options["dryRun"].as_array().is_some_and(|values| !values.is_empty()),
        None => uri.query().is_some_and(|query| query.contains("dryRun=")),
    }
}

/// The body of a call that must not come true: a deletion with a body is one whatever its query says.
fn with_dry_run_inside(call: &Call, body: Vec<u8>) -> Result<Vec<u8>, BoxError> {
    let Some(mut options) = deletion_options(call, &body) else { return Ok(body) };
    options["dryRun"] = json!(["All"]);
    Ok(serde_json::to_vec(&options)?)
}

/// What the body of a deletion says; nothing for other calls, and without a body.
fn deletion_options(call: &Call, body: &[u8]) -> Option<Value> {
    let is_deletion = matches!(call.verb, "delete" | "deletecollection") && !body.is_empty();
    // What is no JSON the cluster refuses; it must not be taken for an empty body.
    is_deletion.then(|| serde_json::from_slice(body).ok().filter(Value::is_object).unwrap_or_else(|| json!({})))
}

fn with_dry_run(uri: &Uri) -> Result<Uri, BoxError> {
    let joint = if uri.query().is_some() { '&' } else { '?' };
    Ok(format!("{uri}{joint}dryRun=All").replace("?&", "?").parse()?)
}
