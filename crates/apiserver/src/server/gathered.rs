//! What a connection writes in one turn, sent as one.
//!
//! HTTP/2 flushes after every frame, and every waiting request or watch wakes its connection. Sent as it comes, an event
//! for a hundred watches is a hundred TLS records and system calls, and the reader wakes as often. So a connection that is
//! woken first lets the others run that are ready, and what it then writes leaves when its turn ends.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is kept back; what is written beyond it leaves at once.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// How much room a connection keeps while it has nothing to send.
const ROOM_BYTES_MAX: usize = 16 << 10;

/// A stream whose writes wait for the end of the turn; a clone is the same stream.
pub(super) struct Gathered<S>(Arc<Mutex<Kept<S>>>);

struct Kept<S> {
    stream: S,
    bytes: Vec<u8>,
    /// How many of the bytes are sent.
    sent: usize,
}

impl<S> Clone for Gathered<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gathered<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Kept { stream, bytes: Vec::new(), sent: 0 })))
    }

    /// Drives the connection that `poll` is about, turn by turn.
    pub(super) async fn take_turns<T, E: From<io::Error>>(
        &self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, E>>,
    ) -> Result<T, E> {
        let mut let_others_first = true;
        std::future::poll_fn(|context| {
            if let_others_first {
                let_others_first = false;
                // A task that wakes itself goes to the end of the queue.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let_others_first = true;
            let outcome = poll(context);
            if outcome.is_pending()
                && let Poll::Ready(Err(error)) = self.kept().send(context)
            {
                return Poll::Ready(Err(error.into()));
            }
            outcome
        })
        .await
    }

    fn kept(&self) -> MutexGuard<'_, Kept<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Kept<S> {
    /// Sends what is kept.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.bytes[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(ROOM_BYTES_MAX);
        self.sent = 0;
        Pin::new(&mut self.stream).poll_flush(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut kept.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut kept = self.kept();
        if kept.bytes.len() >= KEPT_BYTES_MAX {
            ready!(kept.send(context))?;
        }
        kept.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    /// The end of the turn flushes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut kept = self.kept();
        ready!(kept.send(context))?;
        Pin::new(&mut kept.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    /// A stream that knows how often it was written to.
    struct Counted(DuplexStream, Arc<Mutex<usize>>);

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, out)
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            *self.1.lock().unwrap() += 1;
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    /// Writes three frames as HTTP/2 does, each with a flush.
    fn write_frames(mut stream: Gathered<Counted>, context: &mut Context<'_>) {
        for frame in [b"one ", b"two ", b"six "] {
            assert!(Pin::new(&mut stream).poll_write(context, frame).is_ready());
            assert!(Pin::new(&mut stream).poll_flush(context).is_ready());
        }
    }

    #[tokio::test]
    async fn what_is_written_in_a_turn_leaves_as_one() {
        let (near, mut far) = duplex(KEPT_BYTES_MAX);
        let writes = Arc::new(Mutex::new(0));
        let stream = Gathered::new(Counted(near, Arc::clone(&writes)));
        let mut turns = 0;
        let ended = stream.take_turns(|context| {
            turns += 1;
            write_frames(stream.clone(), context);
            assert_eq!(*writes.lock().unwrap(), turns - 1, "nothing leaves before the turn ends");
            context.waker().wake_by_ref();
            if turns < 3 { Poll::Pending } else { Poll::Ready(Ok::<_, io::Error>(())) }
        });
        ended.await.unwrap();
        stream.clone().shutdown().await.unwrap();
        assert_eq!(*writes.lock().unwrap(), 3, "one write a turn");
        let mut received = String::new();
        far.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "one two six ".repeat(3));
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_writer_back_and_gets_all() {
        const ALL: usize = 20 * KEPT_BYTES_MAX;
        let (near, mut far) = duplex(1024);
        let mut stream = Gathered::new(near);
        let mut accepted = 0;
        while let Some(Ok(count)) = stream.write(&[7; 4096]).now_or_never() {
            accepted += count;
        }
        assert!(accepted <= 2 * KEPT_BYTES_MAX, "{accepted} bytes were taken from a writer whom nobody reads");
        let write = async {
            stream.write_all(&vec![7; ALL - accepted]).await?;
            stream.shutdown().await
        };
        let mut received = Vec::new();
        let (written, read) = tokio::join!(write, far.read_to_end(&mut received));
        written.unwrap();
        read.unwrap();
        assert_eq!(received, vec![7; ALL]);
    }
}
