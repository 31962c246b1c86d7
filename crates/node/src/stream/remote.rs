//! The client of a stream, whatever protocol it speaks.

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::outcome::Outcome;
use crate::sandbox::Size;

/// Pieces of input or output that wait for a slow other side.
pub(super) const QUEUE_MAX: usize = 16;

/// Where something that a client is told belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Stdout,
    Stderr,
}

/// What a client is told.
#[derive(Debug)]
pub(super) enum Said {
    /// Output of the program.
    Output(Channel, Bytes),
    /// How it went; nothing follows.
    Outcome(Outcome),
}

/// The client of a stream.
#[derive(Debug)]
pub(super) struct Remote {
    /// What it types; ends when nothing more will come.
    pub(super) input: mpsc::Receiver<Bytes>,
    /// The size of its terminal, once it is known.
    pub(super) sizes: watch::Receiver<Option<Size>>,
    /// What it is told.
    pub(super) output: Output,
    /// Cancelled when it is gone.
    pub(super) gone: CancellationToken,
}

/// What a client is told.
#[derive(Debug, Clone)]
pub(super) struct Output(pub(super) mpsc::Sender<Said>);

impl Output {
    /// Tells the client what the program wrote; one that is gone need not know.
    pub(super) async fn send(&self, channel: Channel, bytes: Bytes) {
        let _ = self.0.send(Said::Output(channel, bytes)).await;
    }

    /// Tells the client how it went.
    pub(super) async fn finish(&self, outcome: Outcome) {
        let _ = self.0.send(Said::Outcome(outcome)).await;
    }
}
