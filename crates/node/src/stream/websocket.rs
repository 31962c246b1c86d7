//! A client that speaks WebSocket: the handshake, and its connection as a [`Remote`].

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::HeaderMap;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::channel::{Heard, Protocol};
use super::remote::{Channel, Output, QUEUE_MAX, Remote, Said};
use crate::sandbox::Size;

/// The largest message of a client; kubectl's are of 32 KiB.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// A client that says nothing for so long is gone, as kubelet has it. kubectl says something every five seconds.
const IDLE_TIME_MAX: Duration = Duration::from_hours(4);
/// How often a client is asked whether it is there, so that one that is gone is noticed also while its input waits.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a client may take to say goodbye.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(5);

/// Whether a request asks for a WebSocket.
pub(super) fn is_wished(headers: &HeaderMap) -> bool {
    let names = |header, word: &str| {
        let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    names(CONNECTION, "upgrade") && names(UPGRADE, "websocket")
}

/// The first of the protocols that a client offers which `known` has; a client that offers none gets the one without name.
///
/// # Errors
/// The sentence that says what is wrong with the request.
pub(super) fn negotiate<T: Copy>(headers: &HeaderMap, known: &[(&'static str, T)]) -> Result<T, String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text(SEC_WEBSOCKET_VERSION) != "13" {
        return Err("only version 13 of WebSocket is supported".to_owned());
    }
    if text(SEC_WEBSOCKET_KEY).is_empty() {
        return Err("a WebSocket needs the header Sec-WebSocket-Key".to_owned());
    }
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut offers: Vec<&str> = offers.flat_map(|value| value.split(',')).map(str::trim).collect();
    if offers.is_empty() {
        offers.push("");
    }
    let found = offers.iter().find_map(|offer| known.iter().find(|(name, _)| name == offer));
    found.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        format!("requested protocol(s) are not supported: {offers:?}; supports {known:?}")
    })
}

/// The headers of the answer that agrees.
pub(super) fn agreed(headers: &HeaderMap, protocol: &'static str) -> HeaderMap {
    let key = headers.get(SEC_WEBSOCKET_KEY).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let accept = derive_accept_key(key);
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, http::HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, http::HeaderValue::from_static("websocket"));
    if let Ok(accept) = accept.parse() {
        answer.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if !protocol.is_empty() {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, http::HeaderValue::from_static(protocol));
    }
    answer
}

/// The WebSocket on a connection whose handshake is done.
pub(super) async fn socket<S: AsyncRead + AsyncWrite + Unpin>(connection: S) -> WebSocketStream<S> {
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX)).max_frame_size(Some(MESSAGE_BYTES_MAX));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// Takes over a connection; `first` is the channel that the client waits for.
pub(super) async fn remote<S>(connection: S, protocol: Protocol, first: Channel) -> Remote
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sink, stream) = socket(connection).await.split();
    let (typed, input) = mpsc::channel(QUEUE_MAX);
    let (resized, sizes) = watch::channel(None);
    let (output, said) = mpsc::channel(QUEUE_MAX);
    let gone = CancellationToken::new();
    let reader = Reader { stream, protocol, typed: Some(typed), resized };
    tokio::spawn(reader.run(gone.clone()));
    tokio::spawn(write(sink, protocol, said, gone.clone()));
    let output = Output(output);
    if !protocol.closes() {
        // Older clients wait for a first message, however empty.
        output.send(first, Bytes::new()).await;
    }
    Remote { input, sizes, output, gone }
}

struct Reader<S> {
    stream: SplitStream<WebSocketStream<S>>,
    protocol: Protocol,
    /// None once the client will type nothing more.
    typed: Option<mpsc::Sender<Bytes>>,
    resized: watch::Sender<Option<Size>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<S> {
    async fn run(mut self, gone: CancellationToken) {
        let _gone = gone.clone().drop_guard();
        while let Ok(Some(Ok(message))) = tokio::time::timeout(IDLE_TIME_MAX, self.stream.next()).await {
            let content = match message {
                Message::Binary(bytes) => bytes,
                Message::Text(text) => text.into(),
                Message::Close(_) => return,
                _ => continue,
            };
            tokio::select! {
                () = self.take(content) => {}
                () = gone.cancelled() => return,
            }
        }
    }

    async fn take(&mut self, content: Bytes) {
        match self.protocol.read(content) {
            Heard::Input(bytes) => {
                let closed = match &self.typed {
                    Some(typed) => typed.send(bytes).await.is_err(),
                    None => false,
                };
                if closed {
                    self.typed = None;
                }
            }
            Heard::InputEnds => self.typed = None,
            Heard::Resized(size) => drop(self.resized.send(Some(size))),
            Heard::Nothing => {}
        }
    }
}

/// Passes on what is said to the client, until the outcome was or the client is gone.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    protocol: Protocol,
    mut said: mpsc::Receiver<Said>,
    gone: CancellationToken,
) {
    let mut pings = tokio::time::interval(PING_EVERY);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            next = said.recv() => match next {
                Some(next) => protocol.write(&next),
                None => break,
            },
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
            () = gone.cancelled() => return,
        };
        let Some(message) = message else { continue };
        let sent = tokio::select! {
            sent = sink.send(message) => sent.is_ok(),
            () = gone.cancelled() => false,
        };
        if !sent {
            return gone.cancel();
        }
    }
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    let goodbye = async {
        let _ = sink.send(Message::Close(Some(goodbye))).await;
        gone.cancelled().await;
    };
    let _ = tokio::time::timeout(GOODBYE_TIME_MAX, goodbye).await;
    gone.cancel();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn the_clients_first_known_protocol_is_chosen() {
        let known = [("v5", 5), ("v4", 4), ("", 0)];
        let check = |offers: &'static str, expect: Option<i32>| {
            let headers = headers(&[
                ("sec-websocket-version", "13"),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ("sec-websocket-protocol", offers),
            ]);
            assert_eq!(negotiate(&headers, &known).ok(), expect, "{offers}");
        };
        check("v4, v5", Some(4));
        check("x,v5", Some(5));
        check("x", None);
        check("", Some(0));
        assert!(negotiate(&headers(&[("sec-websocket-version", "8")]), &known).is_err());
    }

    #[test]
    fn the_answer_proves_that_the_key_was_read() {
        let asked = headers(&[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]);
        let answer = agreed(&asked, "v5");
        assert_eq!(answer[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(answer[SEC_WEBSOCKET_PROTOCOL], "v5");
    }

    #[test]
    fn a_wish_needs_both_headers() {
        assert!(is_wished(&headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")])));
        assert!(!is_wished(&headers(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")])));
        assert!(!is_wished(&headers(&[("upgrade", "websocket")])));
    }
}
