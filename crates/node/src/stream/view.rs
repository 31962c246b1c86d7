//! Shows the body of an answer to a client over WebSocket: logs in a browser.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use super::websocket;
use crate::serve::Body;

/// How bytes become messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) name: &'static str,
    base64: bool,
}

/// All forms.
pub(super) const FORMS: [Form; 3] = [
    Form { name: "binary.k8s.io", base64: false },
    Form { name: "base64.binary.k8s.io", base64: true },
    Form { name: "", base64: false },
];

impl Form {
    fn message(self, bytes: Bytes) -> Message {
        if self.base64 { Message::text(STANDARD.encode(bytes)) } else { Message::Binary(bytes) }
    }
}

/// Sends the body, until it or the client ends.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(connection: S, form: Form, body: Body) {
    let (mut sink, mut stream) = websocket::socket(connection).await.split();
    let listen = async { while let Some(Ok(_)) = stream.next().await {} };
    let show = async {
        // Clients wait for a first message, however empty.
        sink.send(form.message(Bytes::new())).await.map_err(io::Error::other)?;
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            sink.send(form.message(piece?)).await.map_err(io::Error::other)?;
        }
        sink.close().await.map_err(io::Error::other)
    };
    tokio::select! {
        () = listen => {}
        shown = show => if let Err(error) = shown {
            tracing::debug!(%error, "a log was not shown to its end");
        },
    }
}
