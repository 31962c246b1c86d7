//! What a client sends over a stream, as functions of bytes.

use std::io::Cursor;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::BytesMut;
use tokio::runtime::{self, Runtime};

use super::channel::{PROTOCOLS, Protocol};
use super::options::Options;
use super::remote::Channel;
use super::spdy::{Connection, Frame};
use super::{tunnel, websocket};

/// A connection that has ended is let go of well before this.
const END_TIME_MAX: Duration = Duration::from_secs(3);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built"));

/// A byte for the protocol, then its frames: nothing is heard that was not said, and the stream ends with its connection.
pub(crate) fn frames(bytes: &[u8]) {
    let [version, rest @ ..] = bytes else { return };
    if let Ok(query) = std::str::from_utf8(rest) {
        let _ = Options::parse(query);
    }
    let connection = tokio::io::join(Cursor::new(rest.to_vec()), tokio::io::sink());
    let heard = RUNTIME.block_on(async {
        match PROTOCOLS.get(usize::from(*version)) {
            Some(protocol) => channels(connection, *protocol).await,
            None if version.is_multiple_of(2) => {
                read_back(rest);
                multiplexed(Connection::new(connection)).await
            }
            None => multiplexed(Connection::new(tunnel::inside(websocket::socket(connection).await))).await,
        }
    });
    assert!(heard <= rest.len(), "{heard} bytes were heard");
}

type Said = tokio::io::Join<Cursor<Vec<u8>>, tokio::io::Sink>;

async fn channels(connection: Said, protocol: Protocol) -> usize {
    let mut remote = websocket::remote(connection, protocol, Channel::Stdout).await;
    let mut heard = 0;
    while let Some(piece) = remote.input.recv().await {
        heard += piece.len();
    }
    let ended = tokio::time::timeout(END_TIME_MAX, remote.gone.cancelled()).await;
    assert!(ended.is_ok(), "the stream goes on without its connection");
    heard
}

async fn multiplexed(mut connection: Connection) -> usize {
    let mut heard = 0;
    while let Some(mut stream) = connection.opened.recv().await {
        // Only what has come already: the client may go on in another stream.
        while let Ok(piece) = stream.input.try_recv() {
            heard += piece.len();
        }
    }
    let ended = tokio::time::timeout(END_TIME_MAX, connection.gone.cancelled()).await;
    assert!(ended.is_ok(), "the connection goes on without its client");
    heard
}

/// Frames are the same when they are written and read again.
fn read_back(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    while let Ok(Some(frame)) = Frame::take(&mut buffer) {
        let mut written = BytesMut::new();
        frame.put(&mut written);
        let again = if written.is_empty() { Some(Frame::Other) } else { Frame::take(&mut written).ok().flatten() };
        assert_eq!(again, Some(frame), "what is written is read");
    }
}
