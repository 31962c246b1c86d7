//! The network namespace of one Pod.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream as StdTcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::thread::LinkNameSpaceType;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::bridge::Network;
use super::tool::{NetworkError, batch, ip};

/// Where `ip` keeps namespaces that have a name.
const DIRECTORY: &str = "/run/netns";
/// How long a program in a Pod may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

impl Network {
    /// Makes the namespace of a Pod, or finds it again. To be called where it may block.
    pub(crate) fn make_space(&self, uid: &str, address: Ipv4Addr) -> Result<(), NetworkError> {
        if self.is_made(uid, address) {
            return Ok(());
        }
        self.remove_space(uid);
        let (name, link) = (name(&self.tag, uid), self.link(uid));
        let prefix = self.pods.prefix;
        let make = || {
            ip(&format!("netns add {name}"))?;
            let outside = [
                format!("link add {link} type veth peer name eth0 netns {name}"),
                format!("link set {link} master {} up", self.bridge()),
            ];
            batch("", &outside)?;
            let inside = [
                "link set lo up".to_owned(),
                format!("addr add {address}/{prefix} dev eth0"),
                "link set eth0 up".to_owned(),
                format!("route add default via {}", self.gateway()),
            ];
            batch(&format!("-n {name}"), &inside)
        };
        let made = make();
        if made.is_err() {
            self.remove_space(uid);
        }
        made
    }

    fn is_made(&self, uid: &str, address: Ipv4Addr) -> bool {
        let has_link = Path::new("/sys/class/net").join(self.link(uid)).exists();
        let shown = || ip(&format!("-n {} -o -4 addr show dev eth0 up", name(&self.tag, uid)));
        has_link && shown().is_ok_and(|shown| shown.contains(&format!(" {address}/")))
    }

    /// Where the namespace of a Pod is.
    pub(crate) fn space(&self, uid: &str) -> PathBuf {
        Path::new(DIRECTORY).join(name(&self.tag, uid))
    }

    /// Removes the namespace of a Pod. To be called where it may block.
    pub(crate) fn remove_space(&self, uid: &str) {
        if self.space(uid).exists() {
            let _ = ip(&format!("link del {}", self.link(uid)));
            let _ = ip(&format!("netns del {}", name(&self.tag, uid)));
        }
    }

    /// Removes the namespaces of Pods that are no more, by their ids.
    pub(crate) fn sweep(&self, is_alive: &dyn Fn(&str) -> bool) {
        remove_where(&self.tag, |uid| !is_alive(uid));
    }

    /// The host's end of a Pod's cable; the kernel takes 15 characters.
    fn link(&self, uid: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.tag, uid).hash(&mut hasher);
        format!("we{:012x}", hasher.finish() & 0xffff_ffff_ffff)
    }
}

fn name(tag: &str, uid: &str) -> String {
    format!("windlass-{tag}-{uid}")
}

/// Removes namespaces of a node by the ids of their Pods. The cable goes with the namespace.
pub(super) fn remove_where(tag: &str, is_meant: impl Fn(&str) -> bool) {
    let prefix = name(tag, "");
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let is_ours = |name: &&str| name.strip_prefix(&prefix).is_some_and(&is_meant);
        let Some(name) = file.to_str().filter(is_ours) else { continue };
        if let Err(error) = ip(&format!("netns del {name}")) {
            tracing::warn!(%error, name, "the network of a Pod was not removed");
        }
    }
}

/// Connects to a port of localhost as it is inside a namespace.
pub(crate) async fn connect_inside(space: PathBuf, port: u16) -> io::Result<TcpStream> {
    let (sender, receiver) = oneshot::channel();
    // A thread of its own: it never leaves the namespace.
    std::thread::Builder::new().name("inside".to_owned()).spawn(move || {
        let connect = || -> io::Result<StdTcpStream> {
            let space = File::open(&space)?;
            rustix::thread::move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let stream = StdTcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        // Who no longer waits needs no connection.
        let _ = sender.send(connect());
    })?;
    let stream = receiver.await.map_err(|_| io::Error::other("the connection was given up"))?;
    TcpStream::from_std(stream?)
}
