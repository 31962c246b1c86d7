//! Talk between the processes of a sandbox: JSON lines with the node, descriptors and failures with the container.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line that a sandbox process accepts: a container with large environment and many volumes fits well.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;
const FAILURE_BYTES_MAX: usize = 4096;

/// JSON lines over a socket.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: UnixStream,
    buffer: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    Message(T),
    /// Nothing complete yet.
    Wait,
    /// The other side is gone.
    End,
}

impl Lines {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, buffer: Vec::new(), descriptor: None }
    }

    /// The descriptor that came along with a message, if one did.
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Writes one message.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// Takes a message that has arrived already, if one is complete.
    pub(crate) fn buffered<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Reads once from the socket (which blocks, if it is a blocking one) and returns the first complete message.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> io::Result<Next<T>> {
        if let Some(message) = self.buffered()? {
            return Ok(Next::Message(message));
        }
        let mut chunk = [0; 16384];
        let (read, descriptor) = receive(&self.stream, &mut chunk)?;
        self.descriptor = descriptor.or(self.descriptor.take());
        if read == 0 {
            return Ok(Next::End);
        }
        self.buffer.extend_from_slice(&chunk[..read]);
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "message is too long"));
        }
        Ok(self.buffered()?.map_or(Next::Wait, Next::Message))
    }
}

/// What the container's processes tell their supervisor until the program runs; the end of the stream says it does.
#[derive(Debug)]
pub(crate) enum Setup {
    /// The descriptor of the filter's notifications.
    Listener(OwnedFd),
    /// Setting up failed.
    Failed(String),
    /// The program runs.
    Complete,
}

/// Hands the listener to the supervisor.
pub(crate) fn send_listener(channel: &UnixStream, listener: OwnedFd) -> io::Result<()> {
    send(channel, b"L", listener.as_fd()).map(drop)
}

/// Sends the first of `bytes`, at least one, together with a descriptor; how many were sent.
pub(crate) fn send(channel: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    Ok(rustix::net::sendmsg(channel, &[IoSlice::new(bytes)], &mut control, SendFlags::empty())?)
}

/// Receives bytes and the descriptor that came along with them, if one did; no bytes mean the end.
pub(crate) fn receive(channel: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(channel, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((received.bytes, descriptor))
}

/// Tells the supervisor why the program cannot start.
pub(crate) fn send_failure(channel: &UnixStream, text: &str) {
    let mut message = vec![b'E'];
    message.extend(text.bytes().take(FAILURE_BYTES_MAX));
    // A supervisor that is gone takes this process with it.
    let _ = (&*channel).write_all(&message);
}

/// Receives the next word about the setup; blocks until there is one.
pub(crate) fn receive_setup(channel: &UnixStream) -> io::Result<Setup> {
    let mut bytes = [0; FAILURE_BYTES_MAX + 1];
    let (count, listener) = receive(channel, &mut bytes)?;
    Ok(match (listener, count) {
        (Some(listener), _) => Setup::Listener(listener),
        (None, 0) => Setup::Complete,
        (None, count) => Setup::Failed(String::from_utf8_lossy(&bytes[1..count]).into_owned()),
    })
}
