//! One request as the audit log shows it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header::USER_AGENT};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Level, content, notes::Notes};
use crate::{
    auth::{Target, User},
    request::RequestInfo,
};

/// The header by which client and server name a request.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// What is known of a request before it is answered.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    uri: String,
    headers: HeaderMap,
    received: Timestamp,
}

impl Request {
    /// Remembers a request.
    pub(crate) fn new<B>(request: &http::Request<B>) -> Self {
        let header = |headers: &HeaderMap, name| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let given = header(request.headers(), AUDIT_ID);
        Self {
            id: if given.is_empty() { uuid::Uuid::new_v4().to_string() } else { given },
            // Over HTTP/2 the address of the server is part of it, too.
            uri: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            headers: request.headers().clone(),
            received: Timestamp::now(),
        }
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) request: &'a Request,
    pub(crate) info: &'a RequestInfo,
    pub(crate) user: &'a User,
    pub(crate) level: Level,
    pub(crate) notes: Notes,
    pub(crate) status: StatusCode,
    /// The body of the request, if it was kept.
    pub(crate) sent: Bytes,
    /// The headers and the body of the answer, if they were kept.
    pub(crate) answer: Option<(HeaderMap, Bytes)>,
}

impl Outcome<'_> {
    /// The line for the request.
    pub(super) fn event(&self) -> Value {
        let method = self.info.method.as_str().to_ascii_lowercase();
        let attributes = self.info.attributes(&method);
        let watches = attributes.verb == "watch" && self.info.method == Method::GET;
        let long = watches || self.status == StatusCode::SWITCHING_PROTOCOLS;
        let agent = self.request.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": self.level.as_str(), "auditID": self.request.id,
            "stage": if long { "ResponseStarted" } else { "ResponseComplete" },
            "requestURI": self.request.uri, "verb": attributes.verb, "user": account(self.user), "userAgent": agent,
            "responseStatus": {"metadata": {}, "code": self.status.as_u16()},
            "requestReceivedTimestamp": micro(self.request.received), "stageTimestamp": micro(Timestamp::now()),
        });
        if let Target::Resource { group, resource, subresource, namespace, name } = attributes.target {
            let version = self.info.resource.as_ref().map_or("", |request| request.version.as_str());
            let name = if name.is_empty() { self.notes.name.as_str() } else { name };
            let fields = [
                ("resource", resource),
                ("namespace", namespace),
                ("name", name),
                ("apiGroup", group),
                ("apiVersion", version),
                ("subresource", subresource),
            ];
            event["objectRef"] =
                fields.iter().filter(|(_, text)| !text.is_empty()).map(|(field, text)| (*field, *text)).collect();
        }
        if !self.notes.annotations.is_empty() {
            event["annotations"] = json!(self.notes.annotations);
        }
        if self.level >= Level::Request
            && let Some(object) = content::object(&self.request.headers, &self.sent)
        {
            event["requestObject"] = object;
        }
        if let Some(object) = self.answer.as_ref().and_then(|(headers, body)| content::object(headers, body)) {
            event["responseObject"] = object;
        }
        event
    }
}

fn account(user: &User) -> Value {
    let mut account = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        account["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        account["extra"] = json!(user.extra);
    }
    account
}

fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
