//! The network of all Pods of a node: a bridge on the host, and the addresses of Services beside it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use super::overlap;
use super::space;
use super::tool::{NetworkError, batch, ip};
use crate::config::AddressRange;
use crate::tag;

/// The file of the node's directory that says which network there is.
const REMEMBERED: &str = "network";

/// The network of all Pods of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub(super) tag: String,
    pub(super) pods: AddressRange,
    services: AddressRange,
}

impl Network {
    /// Makes the network of the node whose directory is `node`, or finds it again, with these addresses.
    ///
    /// # Errors
    /// If this user may not, the machine cannot, or the addresses are in use.
    pub fn begin(node: &Path, pods: AddressRange, services: AddressRange) -> Result<Self, NetworkError> {
        if !rustix::process::geteuid().is_root() {
            return Err(NetworkError::NotRoot);
        }
        let network = Self { tag: tag::of(node), pods, services };
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        for range in [pods, services] {
            if let Some(route) = overlap::find(&routes, range, &network.bridge()) {
                return Err(NetworkError::Overlap { range: range.to_string(), route: route.to_string() });
            }
        }
        // Written first: what is made is found again even if the next line is never reached.
        if let Err(error) =
            fs::create_dir_all(node).and_then(|()| fs::write(node.join(REMEMBERED), services.to_string()))
        {
            tracing::warn!(%error, "which network there is was not written down");
        }
        let made = network.make();
        if made.is_err() {
            network.end();
        }
        made.map(|()| network)
    }

    fn make(&self) -> Result<(), NetworkError> {
        let bridge = self.bridge();
        self.try_link()?;
        if !self.exists() {
            ip(&format!("link add {bridge} type bridge"))?;
        }
        let lines = [
            format!("addr replace {}/{} dev {bridge}", self.gateway(), self.pods.prefix),
            format!("link set {bridge} up"),
            format!("route replace local {} dev lo", self.services),
        ];
        batch("", &lines)
    }

    /// Finds out early whether Pods can be connected at all.
    fn try_link(&self) -> Result<(), NetworkError> {
        let name = format!("wp{}", self.tag);
        let _ = ip(&format!("link del {name}"));
        ip(&format!("link add {name} type veth peer name {name}b"))?;
        ip(&format!("link del {name}")).map(drop)
    }

    fn exists(&self) -> bool {
        Path::new("/sys/class/net").join(self.bridge()).exists()
    }

    /// The name of the bridge.
    pub(super) fn bridge(&self) -> String {
        bridge_of(&self.tag)
    }

    /// The host as Pods reach it.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.pods.nth(1).unwrap_or(self.pods.network)
    }

    /// Removes the network, with those of Pods that are left.
    pub fn end(&self) {
        space::remove_where(&self.tag, |_| true);
        let _ = ip(&format!("link del {}", self.bridge()));
        let _ = ip(&format!("route del local {} dev lo", self.services));
    }
}

/// The name of the bridge of the node whose directory is `node`.
pub fn bridge_name(node: &Path) -> String {
    bridge_of(&tag::of(node))
}

fn bridge_of(tag: &str) -> String {
    format!("wl{tag}")
}

/// Removes the network of the node whose directory is `node`, if it has one.
pub fn clear(node: &Path) {
    let file = node.join(REMEMBERED);
    let Ok(text) = fs::read_to_string(&file) else { return };
    let parsed = text.trim().split_once('/').and_then(|(network, prefix)| {
        Some(AddressRange { network: network.parse().ok()?, prefix: prefix.parse().ok()? })
    });
    if let Some(services) = parsed {
        Network { tag: tag::of(node), pods: services, services }.end();
    }
    let _ = fs::remove_file(file);
}
