//! What a client sends over a stream, as functions of bytes.

use std::io::Cursor;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{self, Runtime};

use super::channel::PROTOCOLS;
use super::options::Options;
use super::remote::Channel;
use super::websocket;

/// A connection that has ended is let go of well before this.
const END_TIME_MAX: Duration = Duration::from_secs(3);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built"));

/// A byte for the version of the protocol, then frames of WebSocket: nothing is heard that was not said, and the stream
/// ends with its connection.
pub(crate) fn frames(bytes: &[u8]) {
    let [version, rest @ ..] = bytes else { return };
    let protocol = PROTOCOLS[usize::from(*version) % PROTOCOLS.len()];
    if let Ok(query) = std::str::from_utf8(rest) {
        let _ = Options::parse(query);
    }
    RUNTIME.block_on(async {
        let connection = tokio::io::join(Cursor::new(rest.to_vec()), tokio::io::sink());
        let mut remote = websocket::remote(connection, protocol, Channel::Stdout).await;
        let mut heard = 0;
        while let Some(piece) = remote.input.recv().await {
            heard += piece.len();
        }
        assert!(heard <= rest.len(), "{heard} bytes were heard");
        let ended = tokio::time::timeout(END_TIME_MAX, remote.gone.cancelled()).await;
        assert!(ended.is_ok(), "the stream goes on without its connection");
    });
}
