//! Carries the output of a program to its client.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use super::remote::{Channel, Output};

/// Output is carried in pieces of this size.
const PIECE_BYTES: usize = 32 << 10;
/// How long more output is waited for after the program's end: what it left running may hold its output open.
const LINGER: Duration = Duration::from_secs(1);

/// Carries everything from `source` to the client, to its end or a moment after the program `ended`. What a client does
/// not want, or no longer, is read all the same: the program must not wait for it.
pub(super) async fn carry(mut source: impl AsyncRead + Unpin, to: Option<(Channel, Output)>, ended: CancellationToken) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let late = async {
            ended.cancelled().await;
            tokio::time::sleep(LINGER).await;
        };
        let read = tokio::select! {
            read = source.read(&mut buffer) => read.unwrap_or(0),
            () = late => 0,
        };
        if read == 0 {
            return;
        }
        if let Some((channel, output)) = &to {
            output.send(*channel, Bytes::copy_from_slice(&buffer[..read])).await;
        }
    }
}
