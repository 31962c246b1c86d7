//! The headers of requests and answers that are passed on.

use std::net::SocketAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

/// Where a request comes from, kept with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
/// What is about a connection, and not about what is said through it.
const OF_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// What proves to this server who asks, and is nobody else's business.
const OF_IDENTITY: [&str; 3] = ["authorization", "impersonate-", "x-remote-"];
/// Whether pages of others may use the answer is for this server to say.
const OF_ORIGIN: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// The headers of a request for `path` here, as they are passed on to a server that is asked as `host`.
pub(super) fn passed(
    mut headers: HeaderMap,
    client: Option<ClientAddress>,
    path: &str,
    host: HeaderValue,
) -> HeaderMap {
    forget_connection(&mut headers);
    let proofs: Vec<HeaderName> = headers
        .keys()
        .filter(|name| OF_IDENTITY.iter().any(|prefix| name.as_str().starts_with(prefix)))
        .cloned()
        .collect();
    for name in proofs {
        headers.remove(name);
    }
    headers.insert(HOST, host);
    if let Ok(path) = HeaderValue::from_str(path) {
        headers.insert(FORWARDED_URI, path);
    }
    if let Some(ClientAddress(client)) = client {
        let before = headers.get_all(&FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let way: Vec<String> = before.map(str::to_owned).chain([client.ip().to_string()]).collect();
        if let Ok(way) = HeaderValue::try_from(way.join(", ")) {
            headers.insert(FORWARDED_FOR, way);
        }
    }
    headers
}

/// Removes from the headers of an answer what is not for the client.
pub(super) fn forget(headers: &mut HeaderMap) {
    forget_connection(headers);
    forget_origin(headers);
}

/// The same for the answer to a wish to go on in another protocol, which is about the connection.
pub(super) fn forget_origin(headers: &mut HeaderMap) {
    for name in OF_ORIGIN {
        headers.remove(name);
    }
}

fn forget_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain(OF_CONNECTION) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let list = list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        list.collect()
    }

    #[test]
    fn a_request_keeps_what_it_says_and_loses_who_says_it() {
        let given = headers(&[
            ("accept", "text/html"),
            ("authorization", "Bearer x"),
            ("connection", "close, x-private"),
            ("host", "here"),
            ("impersonate-user", "ann"),
            ("te", "trailers"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-private", "1"),
            ("x-remote-group", "a"),
        ]);
        let client = Some(ClientAddress("127.0.0.1:4711".parse().unwrap()));
        let found = passed(given, client, "/api/v1/nodes/n/proxy/a%2Fb/", HeaderValue::from_static("there"));
        let expect = headers(&[
            ("accept", "text/html"),
            ("host", "there"),
            ("x-forwarded-for", "1.2.3.4, 127.0.0.1"),
            ("x-forwarded-uri", "/api/v1/nodes/n/proxy/a%2Fb/"),
        ]);
        assert_eq!(found, expect);
    }

    #[test]
    fn an_answer_keeps_what_is_for_the_client() {
        let mut given = headers(&[
            ("access-control-allow-origin", "*"),
            ("content-length", "3"),
            ("keep-alive", "timeout=5"),
            ("set-cookie", "a=b"),
            ("transfer-encoding", "chunked"),
        ]);
        forget(&mut given);
        assert_eq!(given, headers(&[("content-length", "3"), ("set-cookie", "a=b")]));
    }
}
