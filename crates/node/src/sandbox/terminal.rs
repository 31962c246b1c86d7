//! The node's side of a program's terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::Winsize;
use serde::Deserialize;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, ReadBuf};

use crate::sys;

/// How large a terminal is, as clients tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Size {
    /// Columns.
    #[serde(rename = "Width")]
    pub width: u16,
    /// Lines.
    #[serde(rename = "Height")]
    pub height: u16,
}

/// The node's side of a program's terminal. Dropping it hangs up: the kernel tells the programs that it was theirs.
#[derive(Debug)]
pub struct Terminal(AsyncFd<OwnedFd>);

impl Terminal {
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&descriptor)?;
        rustix::fs::fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK)?;
        Ok(Self(sys::watched(descriptor)?))
    }

    /// What programs write to it. There is one reader at a time.
    pub fn output(self: &Arc<Self>) -> TerminalOutput {
        TerminalOutput(Arc::clone(self))
    }

    /// Types all of `bytes`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|terminal| Ok(rustix::io::write(terminal, bytes)?)) {
                Ok(written) => bytes = &bytes[written?..],
                Err(_not_ready) => {}
            }
        }
        Ok(())
    }

    /// Changes its size, of which the kernel tells the programs.
    pub fn resize(&self, size: Size) {
        let size = Winsize { ws_row: size.height, ws_col: size.width, ws_xpixel: 0, ws_ypixel: 0 };
        // A terminal that is gone has no size.
        let _ = rustix::termios::tcsetwinsize(&self.0, size);
    }
}

/// What programs write to a terminal; it ends when the last of them has let go of it.
#[derive(Debug)]
pub struct TerminalOutput(Arc<Terminal>);

impl AsyncRead for TerminalOutput {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.0.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            match ready.try_io(|terminal| Ok(rustix::io::read(terminal, space)?)) {
                Ok(Ok(read)) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Poll::Ready(Ok(())),
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_not_ready) => {}
            }
        }
    }
}
