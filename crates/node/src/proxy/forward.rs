//! Carries connections from the address of a Service to its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::leaving::Leaving;
use super::routes::Route;
use super::turns;
use crate::chaos::{Cuts, Separations};
use crate::low_port;
use crate::sandbox::bar;

/// Connections that one address carries at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 4096;
/// How long one endpoint is tried before the next.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// A pause when the process is out of descriptors, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until aborted; `route` may change meanwhile.
pub(crate) async fn serve(listener: TcpListener, route: watch::Receiver<Arc<Route>>, leaving: Leaving, cuts: Cuts) {
    let next = Arc::new(AtomicUsize::new(0));
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut separations = cuts.follow();
    let close = |now: &Separations| bar(&listener, now.services.get(&route.borrow().service));
    close(&separations.borrow_and_update());
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Ok(()) = separations.changed() => {
                close(&separations.borrow_and_update());
                continue;
            }
        };
        match accepted {
            Ok((stream, client)) => {
                let (route, next, leaving) = (Arc::clone(&route.borrow()), Arc::clone(&next), leaving.clone());
                let cuts = cuts.clone();
                tokio::spawn(async move {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let backends = turns::order(&route, client.ip(), turn, &leaving);
                    carry(stream, client, &route, (backends, cuts)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to a Service was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Hands a connection to the first endpoint that takes it. One that ends badly, or that nobody takes, is reset: an
/// ordinary end would look like a complete answer. So is one between those who are cut off from one another.
async fn carry(mut client: TcpStream, from: SocketAddr, route: &Route, (backends, cuts): (Vec<SocketAddr>, Cuts)) {
    for backend in backends {
        let ends = (&route.service, from.ip(), backend.ip());
        let connect = async {
            // Nothing comes back from the other side of a cut.
            let is_cut = cuts.follow().borrow().separate(ends.0, ends.1, ends.2);
            if is_cut { std::future::pending().await } else { low_port::connect(backend).await }
        };
        let connected = tokio::time::timeout(CONNECT_LIMIT, connect).await;
        let Ok(Ok(mut server)) = connected else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let is_whole = tokio::select! {
            copied = tokio::io::copy_bidirectional(&mut client, &mut server) => copied.is_ok(),
            () = cuts.until_separated(ends.0, ends.1, ends.2) => false,
        };
        if !is_whole {
            let _ = (client.set_zero_linger(), server.set_zero_linger());
        }
        return;
    }
    let _ = client.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn backend(text: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(text.as_bytes()).await.unwrap();
            }
        });
        address
    }

    async fn ask(address: SocketAddr) -> String {
        let mut text = String::new();
        TcpStream::connect(address).await.unwrap().read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn connections_take_turns_and_pass_by_a_dead_endpoint() {
        let dead = { TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
        let backends = vec![backend("a").await, dead, backend("b").await];
        let route = Route { service: Default::default(), backends, sticky: false };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_keep, route) = watch::channel(Arc::new(route));
        tokio::spawn(serve(listener, route, Leaving::default(), Cuts::default()));
        let answers = [ask(address).await, ask(address).await, ask(address).await, ask(address).await];
        assert_eq!(answers, ["a", "b", "b", "a"]);
    }

    #[test]
    fn pods_that_end_are_tried_last() {
        let backends = ["127.9.0.1:1", "127.9.0.2:1", "127.9.0.3:1"].map(|text| text.parse().unwrap()).to_vec();
        let route = Route { service: Default::default(), backends, sticky: false };
        let leaving = Leaving::default();
        let _departure = leaving.enter("127.9.0.2".parse().unwrap());
        let order: Vec<String> =
            turns::order(&route, [127, 0, 0, 1].into(), 1, &leaving).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["127.9.0.3:1", "127.9.0.1:1", "127.9.0.2:1"]);
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_off_does_not_look_complete() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backends = vec![server.local_addr().unwrap()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let route = Route { service: Default::default(), backends, sticky: false };
        let (_keep, route) = watch::channel(Arc::new(route));
        tokio::spawn(serve(listener, route, Leaving::default(), Cuts::default()));
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut half, _) = server.accept().await.unwrap();
        half.write_all(b"half").await.unwrap();
        let mut text = [0; 4];
        client.read_exact(&mut text).await.unwrap();
        half.set_zero_linger().unwrap();
        drop(half);
        let end = client.read(&mut text).await.unwrap_err();
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
    }
}
