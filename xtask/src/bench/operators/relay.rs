//! A relay between a contender and the API server, which counts the bytes that pass.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

const BUFFER: usize = 64 << 10;

/// A relay; it listens until the program ends.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Relay {
    /// A relay to the server at `port` of the loopback address.
    pub(super) fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, bytes) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    connect(client, server, &counted).ok();
                }
            }
        });
        Ok(Self { address, bytes })
    }

    /// The bytes that have passed, both ways, as they are on the wire.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn connect(client: TcpStream, server: TcpStream, bytes: &Arc<AtomicU64>) -> io::Result<()> {
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let ways = [(client.try_clone()?, server.try_clone()?), (server, client)];
    for (from, to) in ways {
        let bytes = Arc::clone(bytes);
        std::thread::spawn(move || pass(from, to, &bytes));
    }
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream, bytes: &AtomicU64) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length) = from.read(&mut buffer) {
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
        bytes.fetch_add(length as u64, Ordering::Relaxed);
    }
    to.shutdown(Shutdown::Both).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_counted() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect(relay.address).unwrap();
        client.write_all(b"question").unwrap();
        let (mut asked, _) = server.accept().unwrap();
        let mut read = [0; 8];
        asked.read_exact(&mut read).unwrap();
        asked.write_all(b"answer").unwrap();
        drop(asked);
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!((&read, said.as_str(), relay.bytes()), (b"question", "answer", 14));
    }
}
