//! Requests to other servers, in the name of who sent them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{
        ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, ETAG, HOST, IF_NONE_MATCH, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE,
    },
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use windlass_store::Store;

use super::remote::{Remote, Target};
use crate::{
    ApiError, Body,
    auth::User,
    codec::read,
    upgrade::Upgrade,
    webhook::{Connections, Dialer, connections, extension_tls, reason},
};

/// How many servers keep their connections.
const CLIENTS_MAX: usize = 50;
/// How long a server may take until its answer begins.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// The same for a question of this server's own, and the longest answer to that.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How many connections may go on in another protocol at once, and when to try again beyond that.
const UPGRADES_MAX: usize = 1_024;
const UPGRADE_RETRY_SECONDS: u32 = 10;
/// What belongs to a connection, and what tells who asks: both are made anew.
const OWN_HEADERS: [HeaderName; 8] =
    [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, HOST, AUTHORIZATION, CONTENT_LENGTH];
const OWN_PREFIXES: [&str; 4] = ["x-remote-", "impersonate-", "proxy-", "keep-alive"];

/// What this server shows to other servers so that they believe what it says of users, in PEM.
#[derive(Clone)]
pub struct FrontProxy {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl std::fmt::Debug for FrontProxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FrontProxy").finish_non_exhaustive()
    }
}

/// The client of other servers.
#[derive(Debug)]
pub(crate) struct Extensions {
    store: Store,
    identity: RwLock<Option<FrontProxy>>,
    clients: Mutex<HashMap<Target, Connections>>,
    upgrades: Arc<Semaphore>,
    stop: CancellationToken,
}

/// What a server said to a question.
#[derive(Debug)]
pub(super) enum Told {
    /// The same as the last time.
    Same,
    /// A document, with the tag that it may be known by.
    Document(Value, Option<HeaderValue>),
}

impl Extensions {
    /// A client that shows `identity`; connections that go on in another protocol end with `stop`.
    pub(crate) fn new(store: Store, identity: Option<FrontProxy>, stop: CancellationToken) -> Self {
        let upgrades = Arc::new(Semaphore::new(UPGRADES_MAX));
        Self { store, identity: RwLock::new(identity), clients: Mutex::default(), upgrades, stop }
    }

    /// Shows another identity from now on.
    pub(crate) fn show(&self, identity: FrontProxy) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Passes a request of `user` on to the server that answers for it.
    pub(crate) async fn forward(
        &self,
        remote: &Remote,
        user: &User,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, ApiError> {
        if !remote.is_available {
            return Err(ApiError::unavailable("service unavailable"));
        }
        let upgrade = Upgrade::wished(&mut request);
        let permit = upgrade.is_some().then(|| Arc::clone(&self.upgrades).try_acquire_owned()).transpose();
        let permit = permit.map_err(|_| {
            ApiError::too_many_requests(
                "too many connections are in use; please try again later",
                UPGRADE_RETRY_SECONDS,
            )
        })?;
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let mut passed = Request::builder().method(parts.method).uri(uri(&remote.target, path)?);
        if let Some(headers) = passed.headers_mut() {
            *headers = told(parts.headers, user);
            upgrade.iter().for_each(|upgrade| upgrade.say(headers));
        }
        let passed = passed.body(Full::new(read(body).await?)).map_err(ApiError::internal)?;
        let response = self.send(&remote.target, passed, ANSWER_TIME_MAX).await;
        let mut response =
            response.map_err(|why| ApiError::unavailable(format!("error trying to reach service: {why}")))?;
        match (upgrade, permit) {
            (Some(upgrade), Some(permit)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                upgrade.join(&mut response, permit, self.stop.clone());
            }
            _ => drop(response.headers_mut().remove(CONNECTION)),
        }
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(TRANSFER_ENCODING);
        Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()))
    }

    /// What the server says at a path, as a user of its own who may look at everything.
    pub(super) async fn ask(&self, target: &Target, path: &str) -> Result<Value, String> {
        match self.ask_again(target, path, None).await? {
            Told::Document(document, _) => Ok(document),
            Told::Same => Err("nothing was known that could be the same".to_owned()),
        }
    }

    /// The same, unless it is what was told under the tag `known`.
    pub(super) async fn ask_again(
        &self,
        target: &Target,
        path: &str,
        known: Option<&HeaderValue>,
    ) -> Result<Told, String> {
        let asker = User::master("system:kube-aggregator");
        let mut request = Request::get(uri(target, path).map_err(|error| error.message)?);
        if let Some(headers) = request.headers_mut() {
            *headers = told(HeaderMap::new(), &asker);
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            headers.extend(known.map(|tag| (IF_NONE_MATCH, tag.clone())));
        }
        let request = request.body(Full::default()).map_err(|error| error.to_string())?;
        let response = self.send(target, request, QUESTION_TIME_MAX).await?;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(Told::Same);
        }
        if !status.is_success() {
            return Err(format!("bad status from {}: {}", address(target, path), status.as_u16()));
        }
        let tag = response.headers().get(ETAG).cloned();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let body = tokio::time::timeout(QUESTION_TIME_MAX, body).await.map_err(|_| "timed out".to_owned())?;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        let document = serde_json::from_slice(&body).map_err(|error| format!("the answer is not JSON: {error}"))?;
        Ok(Told::Document(document, tag))
    }

    async fn send(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
        time: Duration,
    ) -> Result<Response<Incoming>, String> {
        let client = self.client(target)?;
        match tokio::time::timeout(time, client.request(request)).await {
            Ok(answered) => answered.map_err(|error| reason(&error)),
            Err(_) => Err("timed out".to_owned()),
        }
    }

    fn client(&self, target: &Target) -> Result<Connections, String> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(target) {
            return Ok(client.clone());
        }
        let identity = self.identity.read().unwrap_or_else(PoisonError::into_inner);
        let identity = identity.as_ref().map(|identity| (identity.certificate.as_str(), identity.key.as_str()));
        let tls = extension_tls(target.ca_bundle.as_deref(), target.trusts_anybody, identity);
        let tls = tls.map_err(|error| error.to_string())?;
        let dialer = Dialer::of_service(self.store.clone(), &target.namespace, &target.service, target.port);
        let client = connections(tls, dialer);
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(target.clone(), client.clone());
        Ok(client)
    }
}

/// The address of a path of a server.
pub(super) fn address(target: &Target, path: &str) -> String {
    format!("https://{}.{}.svc:{}{path}", target.service, target.namespace, target.port)
}

fn uri(target: &Target, path: &str) -> Result<Uri, ApiError> {
    let text = address(target, path);
    text.parse().map_err(|_| ApiError::internal(format!("{text:?} is no address")))
}

/// The headers of a request with who sent it.
fn told(mut headers: HeaderMap, user: &User) -> HeaderMap {
    let foreign = |name: &HeaderName| {
        OWN_HEADERS.contains(name) || OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
    };
    let unwanted: Vec<HeaderName> = headers.keys().filter(|name| foreign(name)).cloned().collect();
    for name in unwanted {
        headers.remove(name);
    }
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    };
    add("x-remote-user", &user.name);
    if !user.uid.is_empty() {
        add("x-remote-uid", &user.uid);
    }
    user.groups.iter().for_each(|group| add("x-remote-group", group));
    for (key, values) in &user.extra {
        let name = format!("x-remote-extra-{}", escaped(key));
        values.iter().for_each(|value| add(&name, value));
    }
    headers
}

/// A key as a part of a header's name: what cannot stand there as a percent and two digits.
fn escaped(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    key.bytes().map(letter).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_cannot_say_who_they_are() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-remote-user", "root"), ("authorization", "Bearer x"), ("accept", "application/json")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut user = User::new("ann", ["people", "staff"]);
        user.extra.insert("example.com/Role".to_owned(), vec!["a".to_owned()]);
        let told = told(headers, &user);
        let all = |name: &str| told.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("x-remote-user"), ["ann"]);
        assert_eq!(all("x-remote-group"), user.groups);
        assert_eq!(all("x-remote-extra-example.com%2frole"), ["a"]);
        assert_eq!(all("authorization"), Vec::<&str>::new());
        assert_eq!(all("accept"), ["application/json"]);
    }
}
