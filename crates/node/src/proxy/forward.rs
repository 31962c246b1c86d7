//! Carries connections from the address of a Service to its endpoints.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::routes::Route;
use super::turns;
use crate::low_port;

/// Connections that one address carries at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 4096;
/// How long one endpoint is tried before the next.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// A pause when the process is out of descriptors, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until aborted; `route` may change meanwhile.
pub(crate) async fn serve(listener: TcpListener, route: watch::Receiver<Arc<Route>>) {
    let next = Arc::new(AtomicUsize::new(0));
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, client)) => {
                let (route, next) = (Arc::clone(&route.borrow()), Arc::clone(&next));
                tokio::spawn(async move {
                    carry(stream, client, &route, &next).await;
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

async fn carry(mut client_stream: TcpStream, client: SocketAddr, route: &Route, next: &AtomicUsize) {
    let count = route.backends.len();
    let first = if route.sticky { turns::position(client.ip(), count) } else { next.fetch_add(1, Ordering::Relaxed) };
    for attempt in 0..count {
        let backend = route.backends[(first.wrapping_add(attempt)) % count];
        let connected = tokio::time::timeout(CONNECT_LIMIT, low_port::connect(backend)).await;
        let Ok(Ok(mut backend_stream)) = connected else { continue };
        let _ = (client_stream.set_nodelay(true), backend_stream.set_nodelay(true));
        // Either side may end it at any time; that is no news.
        let _ = tokio::io::copy_bidirectional(&mut client_stream, &mut backend_stream).await;
        return;
    }
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
        tokio::spawn(serve(listener, route));
        let answers = [ask(address).await, ask(address).await, ask(address).await, ask(address).await];
        assert_eq!(answers, ["a", "b", "b", "a"]);
    }
}
