//! The console of a container: what goes into its program and comes out of it, for those who attach to it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::log::Stream;
use crate::sandbox::{Size, Terminal};

/// How many may look on at once.
const VIEWERS_MAX: usize = 32;
/// Pieces of output that wait for a slow viewer.
const QUEUE_MAX: usize = 16;
/// A program waits so long for a viewer that takes nothing; then the viewer is sent away.
const STALL_TIME_MAX: Duration = Duration::from_secs(10);

/// Output of the program, and where it was written to.
pub(crate) type Piece = (Stream, Bytes);

/// The console of a container.
#[derive(Debug, Default)]
pub(crate) struct Console {
    terminal: Option<Arc<Terminal>>,
    input: tokio::sync::Mutex<Option<pipe::Sender>>,
    /// Whether the first who types is the last.
    once: bool,
    viewers: Mutex<Viewers>,
}

#[derive(Debug, Default)]
struct Viewers {
    all: Vec<mpsc::Sender<Piece>>,
    closed: bool,
}

impl Console {
    /// A console with a terminal, or with a pipe to the program, or with output only.
    pub(crate) fn new(terminal: Option<Arc<Terminal>>, input: Option<pipe::Sender>, once: bool) -> Self {
        Self { terminal, input: tokio::sync::Mutex::new(input), once, viewers: Mutex::default() }
    }

    /// Whether the program has a terminal, so that all of its output is one.
    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Everything that the program writes from now on, to its end. None if it has ended, or too many look on.
    pub(crate) fn view(&self) -> Option<mpsc::Receiver<Piece>> {
        let mut viewers = self.lock();
        viewers.all.retain(|viewer| !viewer.is_closed());
        if viewers.closed || viewers.all.len() >= VIEWERS_MAX {
            return None;
        }
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        viewers.all.push(sender);
        Some(receiver)
    }

    /// Shows output to everyone who looks on.
    pub(crate) async fn show(&self, stream: Stream, bytes: &[u8]) {
        let viewers = self.lock().all.clone();
        for viewer in viewers {
            let piece = (stream, Bytes::copy_from_slice(bytes));
            if viewer.send_timeout(piece, STALL_TIME_MAX).await.is_err() {
                self.lock().all.retain(|other| !other.same_channel(&viewer));
            }
        }
    }

    /// Types something; a program that takes no input ignores it.
    ///
    /// # Errors
    /// When the program reads no more.
    pub(crate) async fn type_in(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(terminal) = &self.terminal {
            return terminal.write_all(bytes).await;
        }
        match &mut *self.input.lock().await {
            Some(pipe) => pipe.write_all(bytes).await,
            None => Ok(()),
        }
    }

    /// Someone who typed is done. If nobody is to follow, the program's input ends.
    pub(crate) async fn typed(&self) {
        if self.once {
            *self.input.lock().await = None;
        }
    }

    /// Changes the size of the terminal, if there is one.
    pub(crate) fn resize(&self, size: Size) {
        if let Some(terminal) = &self.terminal {
            terminal.resize(size);
        }
    }

    /// The program has ended and all of its output was shown.
    pub(crate) fn close(&self) {
        *self.lock() = Viewers { all: Vec::new(), closed: true };
    }

    fn lock(&self) -> MutexGuard<'_, Viewers> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_look_on_see_what_is_written_from_then_on() {
        let console = Console::default();
        console.show(Stream::Stdout, b"before").await;
        let mut viewer = console.view().unwrap();
        console.show(Stream::Stderr, b"after").await;
        assert_eq!(viewer.recv().await, Some((Stream::Stderr, Bytes::from_static(b"after"))));
        console.close();
        assert_eq!(viewer.recv().await, None);
        assert!(console.view().is_none());
    }

    #[tokio::test]
    async fn viewers_that_have_gone_are_forgotten_and_there_are_not_too_many() {
        let console = Console::default();
        let viewers: Vec<_> = (0..VIEWERS_MAX).filter_map(|_| console.view()).collect();
        assert!(console.view().is_none());
        drop(viewers);
        console.show(Stream::Stdout, b"x").await;
        assert!(console.lock().all.is_empty());
    }
}
