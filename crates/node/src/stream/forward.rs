//! Forwards connections of a client to ports of a Pod: a pair of streams for each, one for data and one for errors.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::spdy::{Connection, Opened};
use crate::{low_port, network};

/// The protocol of forwarding, and its name where SPDY goes through a WebSocket.
pub(super) const PROTOCOL: &str = "portforward.k8s.io";
pub(super) const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

/// How many connections one client may have forwarded at once.
const CONNECTIONS_MAX: usize = 256;
/// How many streams may wait for the other one of their pair, and for how long.
const HALVES_MAX: usize = 64;
const PAIRING_TIME_MAX: Duration = Duration::from_secs(30);
/// How long the program in the Pod may take to answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// Data is carried in pieces of this size.
const PIECE_BYTES: usize = 32 << 10;

/// The Pod that is forwarded to.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) address: Ipv4Addr,
    /// The network namespace of the Pod, whose localhost is meant then.
    pub(crate) space: Option<PathBuf>,
    pub(crate) pod: String,
    pub(crate) uid: String,
    /// Cancelled when the Pod has ended.
    pub(crate) ended: CancellationToken,
}

/// Forwards connections until the client is gone or the Pod has ended.
pub(super) async fn run(mut connection: Connection, destination: Destination) {
    let mut pairs = Pairs::default();
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = tokio::select! {
            next = connection.opened.recv() => next,
            () = destination.ended.cancelled() => None,
        };
        let Some(stream) = next else { break };
        let Some(pair) = pairs.add(stream) else { continue };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            let why = format!("{CONNECTIONS_MAX} connections are forwarded already");
            tokio::spawn(async move { pair.fail(&why).await });
            continue;
        };
        let (destination, gone) = (destination.clone(), connection.gone.clone());
        tokio::spawn(async move {
            let _permit = permit;
            tokio::select! {
                () = pair.forward(&destination) => {}
                () = gone.cancelled() => {}
                () = destination.ended.cancelled() => {}
            }
        });
    }
    connection.close();
}

/// Streams that wait for the other one of their pair, by the client's name for it.
#[derive(Default)]
struct Pairs(HashMap<String, (Opened, Instant)>);

impl Pairs {
    /// Takes a stream; gives the pair if it was the second one.
    fn add(&mut self, stream: Opened) -> Option<Pair> {
        let request = match (stream.header("requestid"), stream.header("streamtype")) {
            // Old clients give no name; their data stream is opened right after that for errors.
            ("", "data") => stream.id.saturating_sub(2).to_string(),
            ("", _) => stream.id.to_string(),
            (name, _) => name.to_owned(),
        };
        self.0.retain(|_, (_, since)| since.elapsed() < PAIRING_TIME_MAX);
        let Some((other, _)) = self.0.remove(&request) else {
            if self.0.len() < HALVES_MAX {
                self.0.insert(request, (stream, Instant::now()));
            }
            return None;
        };
        match (other.header("streamtype"), stream.header("streamtype")) {
            ("error", "data") => Some(Pair { error: other, data: stream }),
            ("data", "error") => Some(Pair { error: stream, data: other }),
            _ => None,
        }
    }
}

/// One connection of the client.
struct Pair {
    error: Opened,
    data: Opened,
}

impl Pair {
    async fn forward(self, destination: &Destination) {
        let text = self.data.header("port");
        let result = match text.parse() {
            Ok(port) if port > 0 => reach(destination, port).await,
            _ => Err(format!("{text:?} is no port")),
        };
        match result {
            Ok(stream) => self.carry(stream).await,
            Err(why) => {
                let Destination { pod, uid, .. } = destination;
                let why = format!("error forwarding port {text} to pod {pod}, uid {uid}: {why}");
                self.fail(&why).await;
            }
        }
    }

    async fn fail(&self, why: &str) {
        self.error.output.send(Bytes::copy_from_slice(why.as_bytes())).await;
        self.error.output.end().await;
        self.data.output.reset().await;
    }

    async fn carry(self, stream: TcpStream) {
        let Opened { mut input, output, .. } = self.data;
        let (mut reader, mut writer) = stream.into_split();
        let up = async move {
            while let Some(bytes) = input.recv().await {
                writer.write_all(&bytes).await?;
            }
            writer.shutdown().await
        };
        let down = async {
            let mut buffer = BytesMut::with_capacity(PIECE_BYTES);
            while reader.read_buf(&mut buffer).await? > 0 {
                output.send(buffer.split().freeze()).await;
                buffer.reserve(PIECE_BYTES);
            }
            output.end().await;
            io::Result::Ok(())
        };
        let both = async { tokio::try_join!(up, down) };
        tokio::select! {
            ended = both => if ended.is_err() {
                output.reset().await;
            },
            () = output.broken.cancelled() => {}
        }
        self.error.output.end().await;
    }
}

/// Connects to what a client means by a port of a Pod: that of its localhost, where it has one.
async fn reach(destination: &Destination, port: u16) -> Result<TcpStream, String> {
    let address = SocketAddr::from((destination.address, port));
    match &destination.space {
        Some(space) => in_time(address, network::connect_inside(space.clone(), port)).await,
        None => connect(address).await,
    }
}

/// Connects to a port of a Pod.
pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    in_time(address, low_port::connect(address)).await
}

async fn in_time(
    address: SocketAddr,
    connecting: impl Future<Output = io::Result<TcpStream>>,
) -> Result<TcpStream, String> {
    match tokio::time::timeout(CONNECT_TIME_MAX, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(format!("dial tcp {address}: connect: connection refused (does the program listen there?)"))
        }
        Ok(Err(error)) => Err(format!("dial tcp {address}: {error}")),
        Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
    }
}
