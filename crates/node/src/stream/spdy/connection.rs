//! The server's side of a connection: its streams as channels.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::frame::Frame;
use super::header::{Headers, Packer, Unpacker};

/// How many streams of one connection may have open ends at once.
const STREAMS_MAX: usize = 512;
/// Pieces that wait for a slow other side, per stream.
const QUEUE_MAX: usize = 16;
/// Streams that wait to be taken.
const OPENED_MAX: usize = 16;
/// A client that says nothing for so long is gone, as kubelet has it.
const IDLE_TIME_MAX: Duration = Duration::from_hours(4);
/// How long the end of a connection may take.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(5);
/// Why a stream is refused, and why one is broken off.
const REFUSED_STREAM: u32 = 3;
const CANCEL: u32 = 5;

/// A connection whose handshake is done.
#[derive(Debug)]
pub(in crate::stream) struct Connection {
    /// The streams that the client opens.
    pub(in crate::stream) opened: mpsc::Receiver<Opened>,
    /// Cancelled when the connection has ended.
    pub(in crate::stream) gone: CancellationToken,
    closing: CancellationToken,
}

/// A stream that the client has opened.
#[derive(Debug)]
pub(in crate::stream) struct Opened {
    pub(in crate::stream) id: u32,
    pub(in crate::stream) headers: Headers,
    /// What the client says; ends when nothing more will come.
    pub(in crate::stream) input: mpsc::Receiver<Bytes>,
    pub(in crate::stream) output: StreamOutput,
}

/// What is said to the client in one stream.
#[derive(Debug, Clone)]
pub(in crate::stream) struct StreamOutput {
    id: u32,
    frames: mpsc::Sender<Frame>,
    /// Cancelled when the client has broken the stream off.
    pub(in crate::stream) broken: Arc<CancellationToken>,
}

impl Opened {
    /// The value of a header.
    pub(in crate::stream) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

impl StreamOutput {
    /// Says something; false if nobody listens.
    pub(in crate::stream) async fn send(&self, content: Bytes) -> bool {
        self.put(Frame::Data { stream: self.id, ends: false, content }).await
    }

    /// Says that nothing follows.
    pub(in crate::stream) async fn end(&self) {
        self.put(Frame::Data { stream: self.id, ends: true, content: Bytes::new() }).await;
    }

    /// Breaks the stream off.
    pub(in crate::stream) async fn reset(&self) {
        self.put(Frame::Reset { stream: self.id, status: CANCEL }).await;
    }

    async fn put(&self, frame: Frame) -> bool {
        !self.broken.is_cancelled() && self.frames.send(frame).await.is_ok()
    }
}

impl Connection {
    /// Takes over a connection.
    pub(in crate::stream) fn new<S>(connection: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(connection);
        let (frames, queue) = mpsc::channel(QUEUE_MAX);
        let (sender, opened) = mpsc::channel(OPENED_MAX);
        let (gone, closing) = (CancellationToken::new(), CancellationToken::new());
        tokio::spawn(write(writer, queue, closing.clone(), gone.clone()));
        let streams =
            Streams { frames, opened: sender, packer: Packer::new(), unpacker: Unpacker::new(), open: HashMap::new() };
        tokio::spawn(read(reader, streams, gone.clone()));
        Self { opened, gone, closing }
    }

    /// Ends the connection once everything was said.
    pub(in crate::stream) fn close(&self) {
        self.closing.cancel();
    }
}

/// Why a connection cannot go on.
struct Broken;

async fn read<S: AsyncRead>(mut reader: ReadHalf<S>, mut streams: Streams, gone: CancellationToken) {
    let _gone = gone.clone().drop_guard();
    let mut buffer = BytesMut::with_capacity(64 << 10);
    loop {
        let read = tokio::select! {
            read = tokio::time::timeout(IDLE_TIME_MAX, reader.read_buf(&mut buffer)) => read,
            () = gone.cancelled() => return,
        };
        if !matches!(read, Ok(Ok(1..))) {
            return;
        }
        loop {
            let frame = match Frame::take(&mut buffer) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return tracing::debug!(%error, "a client of SPDY is not understood"),
            };
            let taken = tokio::select! {
                taken = streams.take(frame) => taken,
                () = gone.cancelled() => return,
            };
            if taken.is_err() {
                return;
            }
        }
    }
}

/// The streams of a connection.
struct Streams {
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Opened>,
    packer: Packer,
    unpacker: Unpacker,
    /// Those that are not broken off.
    open: HashMap<u32, Open>,
}

/// A stream that is not broken off.
struct Open {
    /// None once the client has said everything.
    input: Option<mpsc::Sender<Bytes>>,
    /// Gone once nothing more will be said to the client.
    broken: Weak<CancellationToken>,
}

impl Open {
    fn is_in_use(&self) -> bool {
        self.broken.strong_count() > 0 || self.input.as_ref().is_some_and(|input| !input.is_closed())
    }
}

impl Streams {
    async fn take(&mut self, frame: Frame) -> Result<(), Broken> {
        match frame {
            Frame::Open { stream, ends, headers } => {
                // Also those that are refused change what later headers mean.
                let headers = self.unpacker.read(&headers).map_err(|_| Broken)?;
                self.open(stream, ends, headers).await?;
            }
            Frame::Data { stream, ends, content } => self.data(stream, ends, content).await,
            Frame::Reset { stream, .. } => {
                let broken = self.open.remove(&stream).and_then(|open| open.broken.upgrade());
                broken.into_iter().for_each(|broken| broken.cancel());
            }
            Frame::Ping(id) => self.frames.send(Frame::Ping(id)).await.map_err(|_| Broken)?,
            Frame::Accept { .. } | Frame::GoAway { .. } | Frame::Other => {}
        }
        Ok(())
    }

    async fn open(&mut self, stream: u32, ends: bool, headers: Headers) -> Result<(), Broken> {
        // The client's streams have odd numbers. They should rise, but clients number and send them in two steps.
        if stream.is_multiple_of(2) || self.open.contains_key(&stream) {
            return Err(Broken);
        }
        self.open.retain(|_, open| open.is_in_use());
        if self.open.len() >= STREAMS_MAX {
            let refused = Frame::Reset { stream, status: REFUSED_STREAM };
            return self.frames.send(refused).await.map_err(|_| Broken);
        }
        let (input, receiver) = mpsc::channel(QUEUE_MAX);
        let broken = Arc::new(CancellationToken::new());
        self.open.insert(stream, Open { input: (!ends).then_some(input), broken: Arc::downgrade(&broken) });
        let accepted = Frame::Accept { stream, headers: self.packer.write(&Headers::new()).into() };
        self.frames.send(accepted).await.map_err(|_| Broken)?;
        let output = StreamOutput { id: stream, frames: self.frames.clone(), broken };
        self.opened.send(Opened { id: stream, headers, input: receiver, output }).await.map_err(|_| Broken)
    }

    async fn data(&mut self, stream: u32, ends: bool, content: Bytes) {
        let Some(open) = self.open.get_mut(&stream) else { return };
        let mut over = ends;
        if let Some(input) = open.input.as_ref().filter(|_| !content.is_empty()) {
            // What nobody reads is dropped.
            over |= input.send(content).await.is_err();
        }
        if over {
            open.input = None;
        }
    }
}

async fn write<S: AsyncWrite>(
    mut writer: WriteHalf<S>,
    mut queue: mpsc::Receiver<Frame>,
    closing: CancellationToken,
    gone: CancellationToken,
) {
    let _gone = gone.clone().drop_guard();
    let mut buffer = BytesMut::new();
    loop {
        let next = tokio::select! {
            biased;
            () = gone.cancelled() => return,
            next = queue.recv() => next,
            () = closing.cancelled() => None,
        };
        match &next {
            Some(frame) => frame.put(&mut buffer),
            None => Frame::GoAway { last: 0 }.put(&mut buffer),
        }
        let written = tokio::select! {
            written = writer.write_all_buf(&mut buffer) => written,
            () = gone.cancelled() => return,
        };
        if next.is_none() || written.is_err() {
            let _ = tokio::time::timeout(GOODBYE_TIME_MAX, writer.shutdown()).await;
            return;
        }
        let _ = writer.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other side, made of the same frames.
    struct Client {
        connection: tokio::io::DuplexStream,
        packer: Packer,
        buffer: BytesMut,
    }

    impl Client {
        fn new() -> (Self, Connection) {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            (Self { connection: ours, packer: Packer::new(), buffer: BytesMut::new() }, Connection::new(theirs))
        }

        async fn say(&mut self, frame: Frame) {
            let mut bytes = BytesMut::new();
            frame.put(&mut bytes);
            self.connection.write_all(&bytes).await.unwrap();
        }

        async fn open(&mut self, stream: u32, headers: &[(&str, &str)]) {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let headers = self.packer.write(&headers).into();
            self.say(Frame::Open { stream, ends: false, headers }).await;
        }

        async fn hear(&mut self) -> Option<Frame> {
            loop {
                if let Some(frame) = Frame::take(&mut self.buffer).unwrap() {
                    return Some(frame);
                }
                if self.connection.read_buf(&mut self.buffer).await.unwrap() == 0 {
                    return None;
                }
            }
        }
    }

    fn data(stream: u32, ends: bool, text: &'static str) -> Frame {
        Frame::Data { stream, ends, content: Bytes::from_static(text.as_bytes()) }
    }

    #[tokio::test]
    async fn streams_are_opened_used_and_ended() {
        let (mut client, mut connection) = Client::new();
        client.open(1, &[("streamtype", "data"), ("port", "80")]).await;
        client.say(data(1, false, "hello")).await;
        client.say(data(1, true, "")).await;
        client.say(Frame::Ping(9)).await;
        let mut stream = connection.opened.recv().await.unwrap();
        assert_eq!((stream.id, stream.header("port")), (1, "80"));
        assert_eq!(stream.input.recv().await, Some(Bytes::from_static(b"hello")));
        assert_eq!(stream.input.recv().await, None);
        assert!(stream.output.send(Bytes::from_static(b"answer")).await);
        stream.output.end().await;
        connection.close();
        assert!(matches!(client.hear().await, Some(Frame::Accept { stream: 1, .. })));
        assert_eq!(client.hear().await, Some(Frame::Ping(9)));
        assert_eq!(client.hear().await, Some(data(1, false, "answer")));
        assert_eq!(client.hear().await, Some(data(1, true, "")));
        assert_eq!(client.hear().await, Some(Frame::GoAway { last: 0 }));
        assert_eq!(client.hear().await, None);
        assert!(connection.gone.is_cancelled());
    }

    #[tokio::test]
    async fn a_stream_that_is_broken_off_is_known_to_be() {
        let (mut client, mut connection) = Client::new();
        client.open(1, &[]).await;
        let mut stream = connection.opened.recv().await.unwrap();
        client.say(Frame::Reset { stream: 1, status: CANCEL }).await;
        assert_eq!(stream.input.recv().await, None);
        stream.output.broken.cancelled().await;
        assert!(!stream.output.send(Bytes::new()).await);
    }

    #[tokio::test]
    async fn numbers_may_come_in_any_order_but_only_once() {
        let (mut client, mut connection) = Client::new();
        for stream in [3, 1, 3] {
            client.open(stream, &[]).await;
        }
        let streams = [connection.opened.recv().await.unwrap(), connection.opened.recv().await.unwrap()];
        assert_eq!(streams.map(|stream| stream.id), [3, 1]);
        assert!(connection.opened.recv().await.is_none());
        connection.gone.cancelled().await;
    }
}
