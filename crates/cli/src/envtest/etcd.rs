//! etcd's name without an etcd: the objects are in the API server, so all that is left is to be healthy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::flags::Flags;
use super::orphan;
use crate::failure::Failure;

const HELP: &str = "etcd as `windlass envtest` has it: it keeps nothing and answers /health, for the objects of the\n\
kube-apiserver beside it are in that process.\n\n\
  --listen-client-urls   where to answer\n\n\
Other flags of etcd are accepted and have no effect.";
/// Where etcd answers unless it is told otherwise.
const URL_DEFAULT: &str = "http://localhost:2379";
/// The longest request head that is read.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a client may take over its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(2);

/// Answers until the process is told to end.
pub(super) fn run(flags: &Flags) -> Result<(), Failure> {
    if flags.is_on("help") || flags.is_on("h") {
        println!("{HELP}");
        return Ok(());
    }
    if flags.is_on("version") {
        println!("etcd Version: none; windlass {} keeps the objects", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let url = flags.list("listen-client-urls").next().unwrap_or(URL_DEFAULT);
    let listener = listen(url)?;
    orphan::end_with_parent();
    for connection in listener.incoming() {
        // A client that goes away in the middle needs no answer.
        connection.and_then(answer).ok();
    }
    Ok(())
}

fn listen(url: &str) -> Result<TcpListener, Failure> {
    let address = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let address = address.ok_or_else(|| Failure::new(format!("--listen-client-urls={url}: only http:// is served")))?;
    TcpListener::bind(address).map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))
}

fn answer(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(REQUEST_TIME_MAX))?;
    connection.set_write_timeout(Some(REQUEST_TIME_MAX))?;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match connection.read(&mut buffer)? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    let path = std::str::from_utf8(&head).ok().and_then(|head| head.split(' ').nth(1)).unwrap_or_default();
    let (status, body) = match path.split('?').next() {
        Some("/health") => ("200 OK", r#"{"health":"true","reason":""}"#),
        _ => ("404 Not Found", "404 page not found\n"),
    };
    let length = body.len();
    write!(connection, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
    connection.flush()
}
