//! Watches that are open while a story is told, and end with the last thing that happens in it.

use std::time::Duration;

use anyhow::Result;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::call::{Answer, Call};
use super::story::{Kind, METADATA, TABLE};

/// How long the last event may take.
const LAST_MAX: Duration = Duration::from_secs(6);

/// The watches of a story: each is open on both servers.
pub(super) fn calls(kind: &Kind, since: &str) -> Vec<Call> {
    let watch = |verb: &'static str, options: String, accept: &'static str| {
        let path = format!("{}?watch=true&timeoutSeconds=60&{options}", kind.path);
        Call { accept, ..Call::new(verb, "GET", path, None) }
    };
    let since = format!("resourceVersion={since}");
    vec![
        watch("live", since.clone(), "application/json"),
        watch("live-label", format!("{since}&labelSelector=app%3Da"), "application/json"),
        watch("live-table", since.clone(), TABLE),
        watch("live-metadata", since, METADATA),
        watch("live-now", "labelSelector=app%3Da".to_owned(), "application/json"),
    ]
}

/// The object whose creation is the last event of a watch, by its name and its request.
pub(super) fn last(kind: &Kind, story: &str) -> (String, Call) {
    let story = format!("{story}-last");
    let object = kind.object(&story, &json!({"app": "a"}));
    (kind.name(&story), Call::new("create", "POST", kind.path.clone(), Some(object)))
}

/// An open watch.
pub(super) struct Live {
    answer: Answer,
    body: Body,
    /// The beginning of an event of which the end did not come yet.
    rest: Vec<u8>,
}

impl Live {
    /// Opens the watch.
    pub(super) async fn open(call: &Call, client: &Client) -> Result<Self> {
        let request = Request::builder().method(call.method).uri(&call.path).header("accept", call.accept);
        let response = client.send(request.body(Body::empty())?).await?;
        let code = response.status().as_u16();
        let answer = Answer { code, body: Value::Array(Vec::new()), ..Answer::default() };
        Ok(Self { answer, body: response.into_body(), rest: Vec::new() })
    }

    /// What came until an event of the object `name`, or until it was to be expected.
    pub(super) async fn until(mut self, name: &str) -> Answer {
        let end = tokio::time::Instant::now() + LAST_MAX;
        while !self.has_event_of(name) {
            match tokio::time::timeout_at(end, self.body.frame()).await {
                Ok(Some(Ok(frame))) => self.take(frame.data_ref().map(AsRef::as_ref).unwrap_or_default()),
                _ => break,
            }
        }
        self.answer
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if let (Ok(event), Value::Array(events)) = (serde_json::from_slice(&line), &mut self.answer.body) {
                events.push(event);
            }
        }
    }

    fn has_event_of(&self, name: &str) -> bool {
        let is_it = |event: &Value| {
            let object = &event["object"];
            [&object["metadata"]["name"], &object["rows"][0]["object"]["metadata"]["name"]]
                .iter()
                .any(|it| **it == name)
        };
        self.answer.body.as_array().is_some_and(|events| events.iter().any(is_it))
    }
}
