//! The name server: sockets, and the machine's own servers for names of elsewhere.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Resolver;
use super::message::{self, Reply, Way};
use super::service::{self, Owner};
use super::zone::Zone;
use crate::context::Context;
use crate::low_port;
use crate::proxy::Directory;

const PORT: u16 = 53;
/// The longest message: its length travels in two bytes.
const MESSAGE_BYTES_MAX: usize = 65_535;
/// Questions that wait for other servers at once; more are told that nobody could be asked.
const FORWARDS_MAX: usize = 256;
/// Streams that are served at once; more wait.
const STREAMS_MAX: usize = 64;
/// How long a stream may say nothing.
const STREAM_IDLE: Duration = Duration::from_secs(10);
/// How long another server may think.
const FORWARD_LIMIT: Duration = Duration::from_secs(2);
/// A pause when the process is out of descriptors, so that it does not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The name server as Pods see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameServer {
    pub(crate) address: Ipv4Addr,
    /// Whether it is found by everybody at its well-known port, or only through calls that Windlass answers.
    pub(crate) well_known: bool,
}

/// Starts the name server; none if its address cannot be had, which an event tells.
pub(crate) async fn begin(context: &Arc<Context>, stop: CancellationToken) -> Option<NameServer> {
    let config = &context.config;
    let (object, owner) = match service::ensure(config.client.clone(), config.service_range).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "there is no name server: its Service was not made");
            return None;
        }
    };
    let address = match owner? {
        Owner::Node(address) => address,
        Owner::Pods(address) => return Some(NameServer { address, well_known: true }),
    };
    match bind(address).await {
        Ok((udp, tcp)) => {
            let well_known = udp.local_addr().is_ok_and(|local| local.port() == PORT);
            let server = Server {
                directory: context.directory.clone(),
                domain: config.cluster_domain.clone(),
                forwards: Arc::new(Semaphore::new(FORWARDS_MAX)),
            };
            tokio::spawn(server.run(udp, tcp, stop));
            Some(NameServer { address, well_known })
        }
        Err(error) => {
            let message = format!("{address}:{PORT} cannot be served: {error}. Pods find Services by /etc/hosts alone");
            context.events.warning(&object, None, "ListenFailed", message);
            None
        }
    }
}

/// Takes the well-known port, or where that needs a privilege the one that stands in for it.
async fn bind(address: Ipv4Addr) -> io::Result<(UdpSocket, TcpListener)> {
    let both = async |port: u16| -> io::Result<(UdpSocket, TcpListener)> {
        Ok((UdpSocket::bind((address, port)).await?, TcpListener::bind((address, port)).await?))
    };
    match (both(PORT).await, low_port::stand_in(PORT)) {
        (Err(error), Some(port)) if error.kind() == io::ErrorKind::PermissionDenied => both(port).await,
        (result, _) => result,
    }
}

#[derive(Debug, Clone)]
struct Server {
    directory: Directory,
    domain: String,
    forwards: Arc<Semaphore>,
}

impl Server {
    async fn run(self, udp: UdpSocket, tcp: TcpListener, stop: CancellationToken) {
        tokio::select! {
            () = self.datagrams(Arc::new(udp)) => {}
            () = self.streams(tcp) => {}
            () = stop.cancelled() => {}
        }
    }

    async fn datagrams(&self, socket: Arc<UdpSocket>) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            };
            let query = &buffer[..length];
            let reply = self.reply(query, Way::Datagram);
            if let Reply::Send(answer) = &reply {
                // A client that is gone asks no more.
                let _ = socket.send_to(answer, client).await;
                continue;
            }
            let (server, socket, query) = (self.clone(), Arc::clone(&socket), query.to_vec());
            tokio::spawn(async move {
                if let Some(answer) = server.ask_others(reply, &query, Way::Datagram).await {
                    let _ = socket.send_to(&answer, client).await;
                }
            });
        }
    }

    async fn streams(&self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(STREAMS_MAX));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                // Either side may end it at any time; that is no news.
                let _ = server.stream(stream).await;
                drop(place);
            });
        }
    }

    async fn stream(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let query = timeout(STREAM_IDLE, read_message(&mut stream)).await??;
            let answer = match self.reply(&query, Way::Stream) {
                Reply::Send(answer) => answer,
                reply => match self.ask_others(reply, &query, Way::Stream).await {
                    Some(answer) => answer,
                    None => return Ok(()),
                },
            };
            timeout(STREAM_IDLE, write_message(&mut stream, &answer)).await??;
        }
    }

    fn reply(&self, query: &[u8], way: Way) -> Reply {
        let world = self.directory.world();
        message::reply(Zone { domain: &self.domain, world: &world }, query, way)
    }

    /// The answer to a question that other servers have to be asked.
    async fn ask_others(&self, reply: Reply, query: &[u8], way: Way) -> Option<Vec<u8>> {
        let Ok(_place) = self.forwards.try_acquire() else { return message::unanswered(query, way) };
        match reply {
            Reply::Send(answer) => Some(answer),
            Reply::Ignore => None,
            Reply::Forward => forward(query, way).await.or_else(|| message::unanswered(query, way)),
            Reply::Follow { alias } => {
                let said = match message::follow_up(query, &alias) {
                    Some(question) => forward(&question, way).await,
                    None => None,
                };
                Some(message::followed(query, &alias, said.as_deref(), way))
            }
        }
    }
}

/// What the first of the machine's servers says that answers.
async fn forward(query: &[u8], way: Way) -> Option<Vec<u8>> {
    for server in Resolver::of_machine().servers() {
        let answer = match way {
            Way::Datagram => timeout(FORWARD_LIMIT, ask_by_datagram(server, query)).await,
            Way::Stream => timeout(FORWARD_LIMIT, ask_by_stream(server, query)).await,
        };
        if let Ok(Ok(answer)) = answer {
            return Some(answer);
        }
    }
    None
}

async fn ask_by_datagram(server: IpAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any = if server.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0_u16; 8]) };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(SocketAddr::new(server, PORT)).await?;
    socket.send(query).await?;
    let mut answer = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let length = socket.recv(&mut answer).await?;
        // Under another number it is the answer to another question.
        if length >= 2 && answer.get(..2) == query.get(..2) {
            answer.truncate(length);
            return Ok(answer);
        }
    }
}

async fn ask_by_stream(server: IpAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((server, PORT)).await?;
    write_message(&mut stream, query).await?;
    read_message(&mut stream).await
}

async fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    stream.write_all(&bytes).await
}
