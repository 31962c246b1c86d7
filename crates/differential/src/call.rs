//! One request, sent to both servers, and what came back.

use std::time::Duration;

use anyhow::Result;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// How much of a request is shown in a report.
const SHOWN_MAX: usize = 700;

/// How long an answer may take, one of a watch of a second included.
const ANSWER_MAX: Duration = Duration::from_secs(6);

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) verb: &'static str,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) content: &'static str,
    pub(super) accept: &'static str,
    pub(super) body: Option<Value>,
}

/// What a server said.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) warnings: Vec<String>,
    pub(super) body: Value,
}

impl Answer {
    /// Whether the server closed the connection instead of answering.
    pub(super) fn is_none(&self) -> bool {
        self.code == 0
    }
}

impl Call {
    /// A request with a JSON answer.
    pub(super) fn new(verb: &'static str, method: &'static str, path: String, body: Option<Value>) -> Self {
        Self { verb, method, path, content: "application/json", accept: "application/json", body }
    }

    /// Sends it. A connection that breaks is an answer too, and a bad one.
    pub(super) async fn send(&self, client: &Client) -> Answer {
        let silence = |message: String| Answer { body: serde_json::json!({ "message": message }), ..Answer::default() };
        match tokio::time::timeout(ANSWER_MAX, self.exchange(client)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => silence(format!("no answer: {error:#}")),
            Err(_) => silence("no end of the answer".to_owned()),
        }
    }

    async fn exchange(&self, client: &Client) -> Result<Answer> {
        let body = self.body.as_ref().map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder().method(self.method).uri(&self.path).header("accept", self.accept);
        let request = if body.is_empty() { request } else { request.header("content-type", self.content) };
        let response = client.send(request.body(Body::from(body))?).await?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned()).collect();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok(Answer { code, warnings, body: document(&bytes) })
    }

    /// One line for a report.
    pub(super) fn describe(&self) -> String {
        let whole = self.whole();
        let shown: String = whole.chars().take(SHOWN_MAX).collect();
        if shown.len() < whole.len() { shown + "…" } else { shown }
    }

    /// The line with all of the body.
    pub(super) fn whole(&self) -> String {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        format!("{} {} [{}] {body}", self.method, self.path, self.content)
    }
}

/// A document, or the list of them that a watch is made of.
fn document(bytes: &[u8]) -> Value {
    let several: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    match several {
        Ok(mut documents) if documents.len() == 1 && documents[0].get("object").is_none() => documents.remove(0),
        Ok(documents) => documents.into(),
        Err(_) => String::from_utf8_lossy(bytes).into(),
    }
}
