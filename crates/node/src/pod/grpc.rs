//! The health service of gRPC, as far as a probe needs it.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

const PATH: &str = "/grpc.health.v1.Health/Check";
/// What an answer may hold; one is two bytes long.
const ANSWER_BYTES_MAX: usize = 4096;
/// Compression flag and length before every message.
const PREFIX_BYTES: usize = 5;
/// The first field of a message, a string and a number.
const FIRST_AS_TEXT: u8 = 0x0a;
const FIRST_AS_NUMBER: u8 = 0x08;
const SERVING: u8 = 1;

/// Asks whether `service` (the whole server if empty) is served; an error says why not.
pub(crate) async fn check<S>(stream: S, authority: &str, service: &str) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = Request::post(format!("http://{authority}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(Full::new(question(service)))
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let answer = ask(&mut sender, request).await;
    connection.abort();
    answer
}

async fn ask(
    sender: &mut hyper::client::conn::http2::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(), String> {
    let (head, body) = sender.send_request(request).await.map_err(|error| error.to_string())?.into_parts();
    // A refusal may come without a body and with its status at once.
    status(&head.headers)?;
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
    status(body.trailers().unwrap_or(&HeaderMap::new()))?;
    judge(&body.to_bytes())
}

/// The question about a service.
fn question(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(FIRST_AS_TEXT);
        put_length(&mut message, service.len());
        message.put_slice(service.as_bytes());
    }
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message);
    framed.freeze()
}

/// Writes a length seven bits at a time.
fn put_length(message: &mut BytesMut, mut length: usize) {
    while length >= 0x80 {
        message.put_u8((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.put_u8(length as u8);
}

/// The status of the call; none is fine as long as more may come.
fn status(headers: &HeaderMap) -> Result<(), String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        None | Some("0") => Ok(()),
        Some("12") => Err("this server does not implement the grpc health protocol (grpc.health.v1.Health)".to_owned()),
        Some(code) => Err(format!("gRPC status {code}: {}", text("grpc-message").unwrap_or_default())),
    }
}

/// Whether an answer says that the service is served.
fn judge(answer: &[u8]) -> Result<(), String> {
    let unserved = || "service unhealthy (responded with \"NOT_SERVING\")".to_owned();
    match answer.get(PREFIX_BYTES..) {
        Some([FIRST_AS_NUMBER, SERVING, ..]) => Ok(()),
        // The zero of a field is not sent.
        Some([]) => Err("service unhealthy (responded with \"UNKNOWN\")".to_owned()),
        Some(_) => Err(unserved()),
        None => Err("the server gave no answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{HeaderValue, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use hyper::service::service_fn;

    use super::*;

    /// A server that knows the service `db` and answers `status` for it.
    async fn serve(stream: tokio::io::DuplexStream, status: u8) {
        let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
            assert_eq!((request.uri().path(), request.headers()["te"].as_bytes()), (PATH, &b"trailers"[..]));
            let asked = request.into_body().collect().await.unwrap().to_bytes();
            let known = asked[..] == *b"\0\0\0\0\x04\x0a\x02db";
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(if known { "0" } else { "5" }));
            trailers.insert("grpc-message", HeaderValue::from_static("unknown service"));
            let message = Bytes::from(vec![0, 0, 0, 0, 2, FIRST_AS_NUMBER, status]);
            let frames = [Frame::data(message), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
            let frames = frames.into_iter().skip(usize::from(!known));
            Ok::<_, Infallible>(Response::new(StreamBody::new(futures::stream::iter(frames))))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn ask_server(service: &str, status: u8) -> Result<(), String> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(theirs, status));
        check(ours, "127.0.0.1:80", service).await
    }

    #[tokio::test]
    async fn a_service_is_healthy_if_it_is_served() {
        assert_eq!(ask_server("db", 1).await, Ok(()));
        let refused = ask_server("db", 2).await.unwrap_err();
        assert!(refused.contains("NOT_SERVING"), "{refused}");
        assert_eq!(ask_server("other", 1).await, Err("gRPC status 5: unknown service".to_owned()));
    }

    #[test]
    fn lengths_are_written_seven_bits_at_a_time() {
        let long = "s".repeat(300);
        assert_eq!(question(&long)[PREFIX_BYTES..PREFIX_BYTES + 3], [FIRST_AS_TEXT, 0xac, 0x02]);
    }
}
