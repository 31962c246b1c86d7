//! One request that is passed on, and its answer; neither is ever held as a whole.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION},
    request::Parts,
};
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    destination::{self, Destination, PodPort},
    headers::{self, ClientAddress},
    link::Links,
    name::Scheme,
    page::{self, Packing},
};
use crate::{
    ApiError, Body, PodPlace,
    admission::Operation,
    rest::Scope,
    upgrade::Upgrade,
    webhook::{extension_tls, reason},
};

/// How many requests may be passed on at once, and when to try again beyond that.
const REQUESTS_MAX: usize = 1_024;
const RETRY_SECONDS: u32 = 10;
/// How long a server may take to agree on TLS, and until its answer begins. The latter is for those who wait for news.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const ANSWER_TIME_MAX: Duration = Duration::from_hours(1);
/// The longest head of an answer, and the most headers in it.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 256;
/// The methods that are passed on.
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

/// What all requests that are passed on share.
#[derive(Debug)]
pub(crate) struct Proxy {
    free: Arc<Semaphore>,
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Default for Proxy {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(REQUESTS_MAX)), tls: OnceLock::new() }
    }
}

/// Passes a request on to what it names.
pub(crate) async fn proxy(scope: &Scope, mut request: Request<Body>) -> Result<Response<Body>, ApiError> {
    if !METHODS.contains(request.method()) {
        return Err(ApiError::method_not_allowed(scope.subject(), request.method().as_str()));
    }
    let whole = request.uri().path().to_owned();
    let (prefix, path) = split(&whole, scope.namespace());
    let kind = match scope.kind.plural.as_str() {
        "pods" => "PodProxyOptions",
        "services" => "ServiceProxyOptions",
        _ => "NodeProxyOptions",
    };
    let options = json!({ "kind": kind, "apiVersion": "v1", "path": path });
    scope.admit(Operation::Connect, options).await?;
    let snapshot = scope.api.store().snapshot();
    let to = destination::find(&snapshot, &scope.kind.plural, scope.namespace(), &scope.request.name)?;
    let upgrade = Upgrade::wished(&mut request);
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if upgrade.is_none() && path.is_empty() && is_read {
        // A page's relative links are right only below a path that ends with a slash.
        return redirect(&format!("{whole}/{query}"));
    }
    let target = format!("{}{query}", if path.is_empty() { "/" } else { path });
    let exchange = Exchange { scope, whole: &whole, prefix, target };
    match to {
        Destination::Agent(node) => exchange.with_agent(&node, request, upgrade).await,
        Destination::Pod(to) => exchange.with_pod(&to, request, upgrade).await,
    }
}

/// The path up to the subresource, and what follows; as it was sent, so that what is escaped stays so.
fn split<'a>(path: &'a str, namespace: &str) -> (&'a str, &'a str) {
    // api, v1, (namespaces, NAMESPACE,) RESOURCE, NAME, proxy
    let segments = if namespace.is_empty() { 5 } else { 7 };
    let start = path.len() - path.trim_start_matches('/').len();
    let mut slashes = path[start..].match_indices('/').map(|(at, _)| start + at);
    path.split_at(slashes.nth(segments - 1).unwrap_or(path.len()))
}

fn redirect(to: &str) -> Result<Response<Body>, ApiError> {
    let to = HeaderValue::from_str(to).map_err(ApiError::internal)?;
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, to);
    Ok(response)
}

/// One request on its way.
struct Exchange<'a> {
    scope: &'a Scope,
    /// The path that the client asked for.
    whole: &'a str,
    /// The part of it that leads here.
    prefix: &'a str,
    /// Path and query for the other side.
    target: String,
}

impl Exchange<'_> {
    fn passed(&self, parts: Parts, backend: &str, body: Body) -> Result<Request<Body>, ApiError> {
        let host = asked(&parts).or_else(|| HeaderValue::from_str(backend).ok());
        let host = host.ok_or_else(|| ApiError::internal(format!("{backend:?} is no host")))?;
        let client = parts.extensions.get::<ClientAddress>().copied();
        let headers = headers::passed(parts.headers, client, self.whole, host);
        let mut request = Request::builder().method(parts.method).uri(&self.target);
        request.headers_mut().into_iter().for_each(|known| known.clone_from(&headers));
        request.body(body).map_err(|error| ApiError::bad_request(format!("the request cannot be passed on: {error}")))
    }

    async fn with_agent(
        &self,
        node: &str,
        request: Request<Body>,
        upgrade: Option<Upgrade>,
    ) -> Result<Response<Body>, ApiError> {
        let (parts, body) = request.into_parts();
        let mut request = self.passed(parts, node, body)?;
        if let Some(upgrade) = upgrade {
            upgrade.say(request.headers_mut());
            // The agent answers in this process, and switches the client's connection itself.
            request.extensions_mut().insert(upgrade.into_client());
        }
        let agents = self.scope.api.node_proxy().ok_or_else(no_nodes)?;
        agents.call(node, request).await.map_err(failed)
    }

    async fn with_pod(
        &self,
        to: &PodPort,
        request: Request<Body>,
        upgrade: Option<Upgrade>,
    ) -> Result<Response<Body>, ApiError> {
        let shared = self.scope.api.proxy();
        let permit = Arc::clone(&shared.free).try_acquire_owned().map_err(|_| {
            ApiError::too_many_requests("too many requests are passed on; please try again later", RETRY_SECONDS)
        })?;
        let backend = host(&to.address, to.port);
        let (parts, body) = request.into_parts();
        let is_head = parts.method == Method::HEAD;
        let asked = asked(&parts).and_then(|host| host.to_str().map(str::to_owned).ok()).unwrap_or_default();
        let links = Links { prefix: self.prefix.to_owned(), backend: backend.clone(), asked };
        let mut request = self.passed(parts, &backend, body)?;
        upgrade.iter().for_each(|upgrade| upgrade.say(request.headers_mut()));
        let stream = self.dial(to).await?;
        let response = match to.scheme {
            Scheme::Http => send(stream, request).await?,
            Scheme::Https => send(shared.secure(stream, &to.address).await?, request).await?,
        };
        match upgrade {
            Some(upgrade) => switch(response, upgrade, permit, self.scope),
            None => {
                let packing = packing(response.headers()).filter(|_| !is_head);
                Ok(answer(response, permit, &links, packing))
            }
        }
    }

    async fn dial(&self, to: &PodPort) -> Result<TcpStream, ApiError> {
        let agents = self.scope.api.node_proxy().ok_or_else(no_nodes)?;
        let place = PodPlace { node: &to.node, namespace: &to.namespace, pod: &to.pod };
        agents.dial(place, to.port).await.map_err(failed)
    }
}

fn no_nodes() -> ApiError {
    ApiError::unavailable("this API server has no nodes")
}

fn failed(why: impl std::fmt::Display) -> ApiError {
    ApiError::unavailable(format!("error trying to reach service: {why}"))
}

/// The host that a client asked.
fn asked(parts: &Parts) -> Option<HeaderValue> {
    let named = || parts.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    parts.headers.get(HOST).cloned().or_else(named)
}

/// Host and port as addresses of pages have them.
fn host(address: &str, port: u16) -> String {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{address}:{port}"),
    }
}

impl Proxy {
    /// Agrees on TLS with a server. Its certificate proves nothing: nobody says who could have signed it.
    async fn secure(
        &self,
        stream: TcpStream,
        address: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, ApiError> {
        if self.tls.get().is_none() {
            let config = extension_tls(None, true, None).map_err(ApiError::internal)?;
            let _ = self.tls.set(Arc::new(config));
        }
        let config = self.tls.get().ok_or_else(|| ApiError::internal("there is no TLS"))?;
        let connector = TlsConnector::from(Arc::clone(config));
        let name = ServerName::try_from(address.to_owned()).map_err(ApiError::internal)?;
        match timeout(HANDSHAKE_TIME_MAX, connector.connect(name, stream)).await {
            Ok(secured) => secured.map_err(|error| failed(reason(&error))),
            Err(_) => Err(failed("TLS handshake timeout")),
        }
    }
}

/// Sends a request over a connection of its own, up to where the answer begins.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<Response<Incoming>, ApiError> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| failed(reason(&error)))?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a Pod ended");
        }
    });
    match timeout(ANSWER_TIME_MAX, sender.send_request(request)).await {
        Ok(answered) => answered.map_err(|error| failed(reason(&error))),
        Err(_) => Err(failed("timed out")),
    }
}

/// The answer to a wish to go on in another protocol.
fn switch(
    mut response: Response<Incoming>,
    upgrade: Upgrade,
    permit: OwnedSemaphorePermit,
    scope: &Scope,
) -> Result<Response<Body>, ApiError> {
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        upgrade.join(&mut response, permit, scope.api.shutdown().clone());
        headers::forget_origin(response.headers_mut());
        return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
    }
    if status.as_u16() < 400 {
        return Err(ApiError::unsorted(format!("invalid upgrade response: status code {}", status.as_u16())));
    }
    headers::forget(response.headers_mut());
    Ok(response.map(|body| held(body, permit)))
}

/// The answer as the client gets it.
fn answer(
    mut response: Response<Incoming>,
    permit: OwnedSemaphorePermit,
    links: &Links,
    packing: Option<Packing>,
) -> Response<Body> {
    headers::forget(response.headers_mut());
    let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    if to.is_some() {
        let led_back = to.and_then(|to| links.led_back(to)).and_then(|to| HeaderValue::try_from(to).ok());
        led_back.into_iter().for_each(|to| drop(response.headers_mut().insert(LOCATION, to)));
        return response.map(|body| held(body, permit));
    }
    let Some(packing) = packing else { return response.map(|body| held(body, permit)) };
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().remove(CONTENT_ENCODING);
    response.map(|body| page::rewritten(held(body, permit), packing, links.clone()))
}

/// How the page is packed whose links are to be led back; `None` for what is no page.
fn packing(headers: &HeaderMap) -> Option<Packing> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = text(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if media_type == "text/html" { Packing::of(text(CONTENT_ENCODING)) } else { None }
}

/// A body that counts as a request on its way until it has ended.
fn held(body: Incoming, permit: OwnedSemaphorePermit) -> Body {
    let counted = body.map_frame(move |frame| {
        let _ = &permit;
        frame
    });
    counted.map_err(Into::into).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_behind_is_as_it_was_sent() {
        let check = |path: &str, namespace: &str, expect: &str| {
            let (prefix, rest) = split(path, namespace);
            assert_eq!(rest, expect, "{path}");
            assert_eq!(format!("{prefix}{rest}"), path);
        };
        check("/api/v1/nodes/n/proxy", "", "");
        check("/api/v1/nodes/n/proxy/", "", "/");
        check("/api/v1/nodes/n/proxy/a%2Fb//c/", "", "/a%2Fb//c/");
        check("/api/v1/namespaces/x/services/https:y:web/proxy/proxy/z", "x", "/proxy/z");
        check("//api/v1/namespaces/x/pods/p/proxy/proxy", "x", "/proxy");
    }

    #[test]
    fn only_pages_that_can_be_unpacked_are_changed() {
        let check = |media_type: &'static str, encoding: &'static str, expect: Option<Packing>| {
            let headers = HeaderMap::from_iter([
                (CONTENT_TYPE, HeaderValue::from_static(media_type)),
                (CONTENT_ENCODING, HeaderValue::from_static(encoding)),
            ]);
            assert_eq!(packing(&headers), expect, "{media_type} {encoding}");
        };
        check("text/html; charset=utf-8", "", Some(Packing::None));
        check("text/html", "gzip", Some(Packing::Gzip));
        check("text/html", "br", None);
        check("text/plain", "", None);
    }
}
