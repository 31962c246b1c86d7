//! Writes to objects that only the plan knows: what the API would make of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::request::Parts;
use http::{Request, header};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tower::BoxError;
use windlass_merge::managed::{self, Manager, Write};
use windlass_merge::{OpenApiShape, json_patch, merge_patch, strategic};
use windlass_runtime::tap::Call;

use super::answer::Refusal;
use super::place::meta;

/// The types of the cluster, as its OpenAPI documents describe them.
pub(super) struct Schemas {
    client: Client,
    documents: Mutex<HashMap<String, Option<Arc<Value>>>>,
}

impl Schemas {
    pub(super) fn new(client: Client) -> Self {
        Self { client, documents: Mutex::default() }
    }

    /// The type of a kind; none where the cluster does not describe it.
    async fn shape(&self, group: &str, version: &str, kind: &str) -> Option<OpenApiShape> {
        let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let known = self.documents.lock().ok()?.get(&path).cloned();
        let document = match known {
            Some(document) => document,
            None => {
                let read = self.read(&path).await.map(Arc::new);
                self.documents.lock().ok()?.insert(path, read.clone());
                read
            }
        }?;
        let is_wanted = |schema: &Value| {
            schema["x-kubernetes-group-version-kind"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|known| known["group"] == group && known["version"] == version && known["kind"] == kind)
        };
        let schemas = document["components"]["schemas"].as_object()?;
        let name = schemas.iter().find(|(_, schema)| is_wanted(schema)).map(|(name, _)| name.replace('/', "~1"))?;
        OpenApiShape::at(document, &format!("/components/schemas/{name}"))
    }

    async fn read(&self, path: &str) -> Option<Value> {
        let request = Request::get(format!("/openapi/v3/{path}")).body(Vec::new()).ok()?;
        self.client.request::<Value>(request).await.ok()
    }
}

/// A write to an object of the plan.
pub(super) struct Local<'a> {
    pub(super) call: &'a Call,
    pub(super) parts: &'a Parts,
    pub(super) body: &'a [u8],
    pub(super) schemas: &'a Schemas,
}

/// The object after a write, which may be its last; or why not.
type Made = Result<Value, Refusal>;

impl Local<'_> {
    /// Writes to `live`; none is an object that the plan removed.
    pub(super) async fn write(&self, live: Option<&Value>) -> Result<Made, BoxError> {
        if !matches!(self.call.subresource.as_str(), "" | "status") {
            let message = format!("a plan cannot foresee {} of an object that it changed", self.call.subresource);
            return Ok(Err(Refusal::beyond(message)));
        }
        if self.call.verb == "delete" {
            return Ok(self.delete(live));
        }
        let given = self.given()?;
        if self.call.verb == "create" && live.is_some() {
            return Ok(Err(Refusal::exists(self.call, meta(&given, "name").unwrap_or_default())));
        }
        let kind = live.unwrap_or(&given)["kind"].as_str().unwrap_or_default().to_owned();
        let shape = self.schemas.shape(&self.call.group, &self.call.version, &kind).await;
        let made = match self.make(live, given, shape.as_ref()) {
            Ok(made) => made,
            Err(refusal) => return Ok(Err(refusal)),
        };
        Ok(Ok(match live {
            Some(live) => self.settle(live, made, shape.as_ref()),
            None => begin(made),
        }))
    }

    fn delete(&self, live: Option<&Value>) -> Made {
        let Some(live) = live else { return Err(Refusal::missing(self.call)) };
        let options: Value = serde_json::from_slice(self.body).unwrap_or_default();
        if let Some(uid) = options["preconditions"]["uid"].as_str()
            && meta(live, "uid") != Some(uid)
        {
            return Err(Refusal::conflict(self.call, "the UID in the precondition is another"));
        }
        let mut live = live.clone();
        live["metadata"]["deletionTimestamp"] = Timestamp::now().to_string().into();
        Ok(live)
    }

    /// The body: an object or a patch.
    fn given(&self) -> Result<Value, BoxError> {
        if self.kind().starts_with("application/apply-patch") {
            return Ok(serde_saphyr::from_str(std::str::from_utf8(self.body)?)?);
        }
        Ok(serde_json::from_slice(self.body)?)
    }

    fn kind(&self) -> &str {
        self.parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
    }

    fn make(&self, live: Option<&Value>, given: Value, shape: Option<&OpenApiShape>) -> Result<Value, Refusal> {
        let versions = live.and_then(|live| meta(live, "resourceVersion")).zip(meta(&given, "resourceVersion"));
        if versions.is_some_and(|(live, given)| live != given) {
            return Err(Refusal::conflict(self.call, "the object has been modified"));
        }
        if self.kind().starts_with("application/apply-patch") {
            let is_forced = self.parameter("force").is_some_and(|force| force == "true" || force == "1");
            let applied = managed::apply(&Write::new(self.manager(&self.author()), shape), live, &given, is_forced);
            return applied.map_err(|error| Refusal::conflict(self.call, &error.to_string()));
        }
        if self.call.verb != "patch" {
            return Ok(given);
        }
        let Some(mut made) = live.cloned() else { return Err(Refusal::missing(self.call)) };
        match self.kind() {
            "application/json-patch+json" => json_patch(&mut made, &given).map_err(|error| Refusal::invalid(&error))?,
            "application/strategic-merge-patch+json" => {
                made = strategic::apply(&made, &given, shape).map_err(|error| Refusal::invalid(&error))?;
            }
            _ => merge_patch(&mut made, &given),
        }
        Ok(made)
    }

    /// What may not change by this write stays, and what follows from the change is set.
    fn settle(&self, live: &Value, mut made: Value, shape: Option<&OpenApiShape>) -> Value {
        if self.call.subresource == "status" {
            let (status, fields) = (made["status"].take(), made["metadata"]["managedFields"].take());
            made = live.clone();
            made["status"] = status;
            made["metadata"]["managedFields"] = fields;
        } else if !live["status"].is_null() {
            made["status"] = live["status"].clone();
        }
        for field in ["uid", "creationTimestamp", "generation", "name", "namespace", "resourceVersion"] {
            if !live["metadata"][field].is_null() {
                made["metadata"][field] = live["metadata"][field].clone();
            }
        }
        if !self.kind().starts_with("application/apply-patch") {
            // Only an object of another version could not be tracked, and the plan has none.
            let _ = managed::update(&Write::new(self.manager(&self.author()), shape), Some(live), &mut made);
        }
        let generation = live["metadata"]["generation"].as_i64().filter(|_| live["spec"] != made["spec"]);
        if let Some(generation) = generation {
            made["metadata"]["generation"] = (generation + 1).into();
        }
        made
    }

    /// Who writes, and in which version.
    fn author(&self) -> (String, String) {
        let Call { group, version, .. } = self.call;
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        (self.parameter("fieldManager").unwrap_or_default(), api_version)
    }

    fn manager<'a>(&'a self, (name, api_version): &'a (String, String)) -> Manager<'a> {
        Manager { name, api_version, subresource: &self.call.subresource, time: Timestamp::now() }
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// What the API gives a new object.
fn begin(mut object: Value) -> Value {
    object["metadata"]["creationTimestamp"] = Timestamp::now().to_string().into();
    object["metadata"]["generation"] = 1.into();
    object
}
