//! One request as the audit log shows it.

use http::{HeaderMap, HeaderName, Method, header::USER_AGENT};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    auth::{Attributes, Target, User},
    request::RequestInfo,
};

/// The header by which client and server name a request.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// What is known of a request before it is answered.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    uri: String,
    user_agent: String,
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
            user_agent: header(request.headers(), USER_AGENT),
            received: Timestamp::now(),
        }
    }

    /// The line for the request, after `code` was answered to `user`.
    pub(super) fn event(&self, info: &RequestInfo, user: &User, attributes: &Attributes<'_>, code: u16) -> Value {
        let long = attributes.verb == "watch" && info.method == Method::GET;
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": self.id,
            "stage": if long { "ResponseStarted" } else { "ResponseComplete" },
            "requestURI": self.uri, "verb": attributes.verb, "user": account(user), "userAgent": self.user_agent,
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": micro(self.received), "stageTimestamp": micro(Timestamp::now()),
        });
        if let Target::Resource { group, resource, subresource, namespace, name } = attributes.target {
            let version = info.resource.as_ref().map_or("", |request| request.version.as_str());
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
