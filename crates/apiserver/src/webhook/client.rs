//! One request to a webhook and its answer, over connections that are used again.

use std::{
    collections::HashMap,
    error::Error,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use rustls::CertificateError;
use serde_json::Value;
use windlass_store::Store;

use super::{
    connections::{Connections, connections},
    destination::{ClientConfig, DestinationError},
    dialer::Dialer,
    trust::{self, TrustError},
};
use crate::codec::json_bytes;

/// How many webhooks keep their connections.
const CLIENTS_MAX: usize = 200;
/// The longest answer of a webhook.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How much of an answer is told that is not what it should be.
const TOLD_BYTES_MAX: usize = 512;

/// The client of all webhooks.
#[derive(Debug)]
pub(crate) struct Webhooks {
    store: Store,
    clients: Mutex<HashMap<ClientConfig, Connections>>,
}

/// Why a webhook gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{0}")]
    Destination(String),
    #[error("Post \"{uri}\": {why}")]
    Failed { uri: String, why: String },
    #[error("Post \"{uri}\": context deadline exceeded")]
    Timeout { uri: String },
    #[error("{0}")]
    Refused(String),
    #[error("the answer is not JSON: {0}")]
    Unreadable(String),
}

impl From<DestinationError> for CallError {
    fn from(error: DestinationError) -> Self {
        Self::Destination(error.to_string())
    }
}

impl From<TrustError> for CallError {
    fn from(error: TrustError) -> Self {
        Self::Destination(error.to_string())
    }
}

impl Webhooks {
    /// The client of webhooks whose Services are in `store`.
    pub(crate) fn new(store: Store) -> Self {
        Self { store, clients: Mutex::default() }
    }

    /// Sends `body` to the webhook, which has `time` for all of it.
    pub(crate) async fn call(&self, config: &ClientConfig, body: &Value, time: Duration) -> Result<Value, CallError> {
        let uri = config.uri(time.as_secs().max(1))?;
        let client = self.client(config)?;
        let request = Request::post(&uri)
            .header(CONTENT_TYPE, "application/json")
            .header("accept", "application/json, */*")
            .header("user-agent", "kube-apiserver-admission")
            .body(Full::new(json_bytes(body)))
            .map_err(|error| CallError::Destination(error.to_string()))?;
        match tokio::time::timeout(time, exchange(&client, request, &uri)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Timeout { uri: uri.to_string() }),
        }
    }

    fn client(&self, config: &ClientConfig) -> Result<Connections, CallError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(config) {
            return Ok(client.clone());
        }
        let tls = trust::tls(config.ca_bundle.as_deref())?;
        let dialer = Dialer { store: self.store.clone(), destination: config.destination()? };
        let client = connections(tls, dialer);
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(config.clone(), client.clone());
        Ok(client)
    }
}

async fn exchange(client: &Connections, request: Request<Full<Bytes>>, uri: &Uri) -> Result<Value, CallError> {
    let failed = |why: String| CallError::Failed { uri: uri.to_string(), why };
    let response = client.request(request).await.map_err(|error| failed(reason(&error)))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
    if !status.is_success() {
        return Err(CallError::Refused(refusal(status, &body)));
    }
    serde_json::from_slice(&body).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// What an answer without success says, in the words of Kubernetes clients.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str().filter(|message| !message.is_empty())
    {
        return message.to_owned();
    }
    let told = String::from_utf8_lossy(&body[..body.len().min(TOLD_BYTES_MAX)]).trim().to_owned();
    match status {
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        StatusCode::FORBIDDEN => format!("forbidden: {told}"),
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later".to_owned()
        }
        status if status.is_server_error() => {
            format!("an error on the server ({told:?}) has prevented the request from succeeding")
        }
        status => {
            format!("the server responded with the status code {} but did not return more information", status.as_u16())
        }
    }
}

/// The innermost reason of a failure, certificates in the words that people search for.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    loop {
        if let Some(tls) = innermost.downcast_ref::<rustls::Error>() {
            return certificate_reason(tls);
        }
        // An I/O error hides what it is made of behind its own source.
        let inside = innermost.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inside.map(|inside| inside as &(dyn Error + 'static)).or_else(|| innermost.source()) {
            Some(next) => innermost = next,
            None => return innermost.to_string(),
        }
    }
}

fn certificate_reason(error: &rustls::Error) -> String {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "certificate signed by unknown authority"
        }
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "certificate has expired or is not yet valid"
        }
        other => return format!("tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}
