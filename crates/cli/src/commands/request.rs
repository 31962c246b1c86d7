//! Plain requests for objects of any kind.

use futures::{AsyncBufReadExt, Stream, StreamExt};
use http::Request;
use kube::Client;
use serde_json::Value;

use crate::failure::Failure;

/// Asks for tables, which the server lays out for each kind.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// A watch line longer than this is refused; objects are at most a few MiB.
const WATCH_LINE_BYTES_MAX: usize = 16 << 20;

/// Reads JSON.
pub(crate) async fn get(client: &Client, path: &str, query: &[(&str, String)]) -> Result<Value, kube::Error> {
    get_as(client, path, query, "application/json").await
}

/// Reads JSON of a certain form.
pub(crate) async fn get_as(
    client: &Client,
    path: &str,
    query: &[(&str, String)],
    accept: &str,
) -> Result<Value, kube::Error> {
    client.request(build("GET", path, query, Some(("accept", accept)), Vec::new())?).await
}

/// Reads JSON, or `None` where there is nothing at the path.
pub(crate) async fn find(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    match get(client, path, &[]).await {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends JSON with a method.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    query: &[(&str, String)],
    body: &Value,
) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
    client.request(build(method, path, query, Some(("content-type", kind)), body)?).await
}

/// Watches: the events of a path, one JSON value each, until the server or the caller ends it.
pub(crate) async fn watch(
    client: &Client,
    path: &str,
    query: &[(&str, String)],
    accept: &str,
) -> Result<impl Stream<Item = Result<Value, Failure>> + use<>, kube::Error> {
    let mut query = query.to_vec();
    query.push(("watch", "true".to_owned()));
    let request = build("GET", path, &query, Some(("accept", accept)), Vec::new())?;
    let lines = client.request_stream(request).await?.lines();
    Ok(lines.map(|line| {
        let line = line.map_err(|error| Failure::new(format!("the watch broke: {error}")))?;
        if line.len() > WATCH_LINE_BYTES_MAX {
            return Err(Failure::new("the watch sent a line that is too long"));
        }
        serde_json::from_str(&line).map_err(|error| Failure::new(format!("the watch sent no JSON: {error}")))
    }))
}

fn build(
    method: &str,
    path: &str,
    query: &[(&str, String)],
    header: Option<(&str, &str)>,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, kube::Error> {
    let mut request = Request::builder().method(method).uri(uri(path, query));
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    request.body(body).map_err(kube::Error::HttpError)
}

fn uri(path: &str, query: &[(&str, String)]) -> String {
    let pairs: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", escape(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes everything but unreserved characters.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let query = [("labelSelector", "app in (a,b)".to_owned()), ("limit", "5".to_owned())];
        assert_eq!(uri("/api/v1/pods", &query), "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29&limit=5");
        assert_eq!(uri("/api", &[]), "/api");
    }
}
