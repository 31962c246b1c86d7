//! Carries datagrams from the address of a Service to its endpoints, and the answers back.
//!
//! Datagrams have no connection, so those of one client address are taken for a flow: they go to one endpoint, from a socket
//! of their own by which answers are known, until nothing was sent for a while.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::leaving::Leaving;
use super::routes::Route;
use super::turns;
use crate::chaos::Cuts;
use crate::low_port;

/// Flows that one address carries at once; a further one takes the place of the one that was quiet for the longest time.
const FLOWS_MAX: usize = 4096;
/// How long a flow may be quiet.
const IDLE: Duration = Duration::from_secs(60);
/// How often quiet flows are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The longest datagram.
const BYTES_MAX: usize = 65_535;
/// A pause when the socket reports an error, so that it does not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The datagrams of one client.
struct Flow {
    backend: SocketAddr,
    socket: Arc<UdpSocket>,
    /// When something was last sent, in either direction.
    last: Arc<Mutex<Instant>>,
    answers: AbortHandle,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

impl Flow {
    /// Begins a flow; its answers go to `client` from the socket of the Service.
    async fn begin(service: &Arc<UdpSocket>, own: Ipv4Addr, ends: (SocketAddr, SocketAddr)) -> io::Result<Self> {
        let (client, backend) = ends;
        let socket = Arc::new(UdpSocket::bind((own, 0)).await?);
        socket.connect(low_port::datagram_target(backend)).await?;
        let last = Arc::new(Mutex::new(Instant::now()));
        let (from, to, seen) = (Arc::clone(&socket), Arc::clone(service), Arc::clone(&last));
        let answers = tokio::spawn(async move {
            let mut buffer = vec![0; BYTES_MAX];
            // An error is the word of the endpoint's machine that nobody is there: the flow has ended.
            while let Ok(length) = from.recv(&mut buffer).await {
                touch(&seen);
                // A client that is gone hears nothing.
                let _ = to.send_to(&buffer[..length], client).await;
            }
        });
        Ok(Self { backend, socket, last, answers: answers.abort_handle() })
    }

    /// Whether datagrams still go this way.
    fn serves(&self, route: &Route) -> bool {
        route.backends.contains(&self.backend) && !self.answers.is_finished() && self.quiet() < IDLE
    }

    fn quiet(&self) -> Duration {
        self.last.lock().expect("the lock is never held across a panic").elapsed()
    }
}

fn touch(last: &Mutex<Instant>) {
    *last.lock().expect("the lock is never held across a panic") = Instant::now();
}

/// Carries datagrams until aborted; `route` may change meanwhile. Endpoints are asked from the address `own`, which must
/// not be localhost: what a Pod sends there stays in the Pod, answers would as well.
pub(super) async fn serve(
    socket: UdpSocket,
    own: Ipv4Addr,
    route: watch::Receiver<Arc<Route>>,
    (leaving, cuts): (Leaving, Cuts),
) {
    let all = HashMap::new();
    let mut flows = Flows { socket: Arc::new(socket), own, all, next: 0, limit: FLOWS_MAX, leaving, cuts };
    let mut buffer = vec![0; BYTES_MAX];
    let mut sweeps = tokio::time::interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            received = flows.socket.recv_from(&mut buffer) => match received {
                Ok((length, client)) => {
                    let route = Arc::clone(&route.borrow());
                    flows.carry(&buffer[..length], client, &route).await;
                }
                // On a socket that is not connected this is about a client that is gone, or about too few buffers.
                Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
            },
            _ = sweeps.tick() => {
                let route = Arc::clone(&route.borrow());
                flows.all.retain(|_, flow| flow.serves(&route));
            }
        }
    }
}

/// The flows of one address of a Service.
struct Flows {
    socket: Arc<UdpSocket>,
    own: Ipv4Addr,
    all: HashMap<SocketAddr, Flow>,
    next: usize,
    limit: usize,
    leaving: Leaving,
    cuts: Cuts,
}

impl Flows {
    async fn carry(&mut self, datagram: &[u8], client: SocketAddr, route: &Route) {
        if !self.all.get(&client).is_some_and(|flow| flow.serves(route)) {
            self.all.remove(&client);
            self.make_room();
            let Some(flow) = self.begin(client, route).await else { return };
            self.all.insert(client, flow);
        }
        let Some(flow) = self.all.get(&client) else { return };
        let is_cut = self.cuts.follow().borrow().separate(&route.service, client.ip(), flow.backend.ip());
        if is_cut {
            return;
        }
        touch(&flow.last);
        // The answer to an earlier datagram may be that nobody is there: then the next one goes elsewhere.
        if flow.socket.send(datagram).await.is_err() {
            self.all.remove(&client);
        }
    }

    async fn begin(&mut self, client: SocketAddr, route: &Route) -> Option<Flow> {
        self.next = self.next.wrapping_add(1);
        let backend = *turns::order(route, client.ip(), self.next, &self.leaving).first()?;
        match Flow::begin(&self.socket, self.own, (client, backend)).await {
            Ok(flow) => Some(flow),
            Err(error) => {
                tracing::debug!(%error, %backend, "a datagram to a Service was dropped");
                None
            }
        }
    }

    fn make_room(&mut self) {
        if self.all.len() < self.limit {
            return;
        }
        let quietest = self.all.iter().max_by_key(|(_, flow)| flow.quiet()).map(|(client, _)| *client);
        quietest.and_then(|client| self.all.remove(&client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endpoint that says its name and where it was asked from.
    async fn backend(name: &'static str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 100];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let said = format!("{name} {}", String::from_utf8_lossy(&buffer[..length]));
                socket.send_to(said.as_bytes(), client).await.unwrap();
            }
        });
        address
    }

    async fn begin(backends: Vec<SocketAddr>, sticky: bool) -> (SocketAddr, watch::Sender<Arc<Route>>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let (sender, receiver) = watch::channel(Arc::new(Route { service: Default::default(), backends, sticky }));
        tokio::spawn(serve(socket, Ipv4Addr::LOCALHOST, receiver, (Leaving::default(), Cuts::default())));
        (address, sender)
    }

    async fn client(service: SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(service).await.unwrap();
        socket
    }

    /// What is answered; asks again, as who speaks datagrams has to.
    async fn ask(socket: &UdpSocket, question: &str) -> String {
        let mut buffer = [0; 100];
        loop {
            socket.send(question.as_bytes()).await.unwrap();
            let answer = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut buffer)).await;
            if let Ok(Ok(length)) = answer {
                return String::from_utf8_lossy(&buffer[..length]).into_owned();
            }
        }
    }

    #[tokio::test]
    async fn a_flow_keeps_its_endpoint_and_flows_take_turns() {
        let (service, route) = begin(vec![backend("a").await, backend("b").await], false).await;
        let (one, other) = (client(service).await, client(service).await);
        let first = ask(&one, "1").await;
        assert_eq!(ask(&one, "1").await, first);
        let second = ask(&other, "1").await;
        assert_ne!(first, second);
        route.send_modify(|route| Arc::make_mut(route).backends.truncate(1));
        assert_eq!(
            [ask(&one, "2").await, ask(&other, "2").await],
            ["a 2", "a 2"],
            "an endpoint that left is no more asked"
        );
    }

    #[tokio::test]
    async fn a_client_with_affinity_keeps_its_endpoint_from_every_port() {
        let (service, _route) = begin(vec![backend("a").await, backend("b").await], true).await;
        let first = ask(&client(service).await, "x").await;
        for _ in 0..4 {
            assert_eq!(ask(&client(service).await, "x").await, first);
        }
    }

    #[tokio::test]
    async fn a_dead_endpoint_is_left_for_the_next() {
        let dead = { UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
        let (service, _route) = begin(vec![dead, backend("b").await], false).await;
        for _ in 0..2 {
            assert_eq!(ask(&client(service).await, "x").await, "b x");
        }
    }

    #[tokio::test]
    async fn a_new_flow_takes_the_place_of_the_quietest() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let route = Route { service: Default::default(), backends: vec![backend("a").await], sticky: false };
        let mut flows = Flows {
            socket,
            own: Ipv4Addr::LOCALHOST,
            all: HashMap::new(),
            next: 0,
            limit: 2,
            leaving: Leaving::default(),
            cuts: Cuts::default(),
        };
        let clients: [SocketAddr; 3] = [1, 2, 3].map(|port| ([127, 0, 0, 1], port).into());
        for client in clients {
            flows.carry(b"x", client, &route).await;
        }
        assert_eq!(flows.all.len(), 2);
        assert!(!flows.all.contains_key(&clients[0]));
    }
}
