//! A connection inside of a WebSocket: its messages are bytes of another protocol.

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Bytes on their way in either direction.
const BUFFER_BYTES: usize = 64 << 10;

/// The connection inside of `socket`.
pub(super) fn inside<S>(socket: WebSocketStream<S>) -> DuplexStream
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    tokio::spawn(carry(socket, theirs));
    ours
}

async fn carry<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>, connection: DuplexStream) {
    let (mut sink, mut stream) = socket.split();
    let (mut reader, mut writer) = tokio::io::split(connection);
    let up = async {
        while let Some(Ok(message)) = stream.next().await {
            let content = match message {
                Message::Binary(content) => content,
                Message::Close(_) => break,
                _ => continue,
            };
            if writer.write_all(&content).await.is_err() {
                break;
            }
        }
    };
    let down = async {
        while let Some(content) = next(&mut reader).await {
            if sink.send(Message::Binary(content)).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    };
    // Whoever ends first ends the other: the protocol inside has its own goodbye.
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

async fn next(reader: &mut ReadHalf<DuplexStream>) -> Option<Bytes> {
    let mut buffer = BytesMut::with_capacity(BUFFER_BYTES);
    match reader.read_buf(&mut buffer).await {
        Ok(1..) => Some(buffer.freeze()),
        _ => None,
    }
}
