//! What a node is told at its start.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::network::Network;
use crate::runc::Runc;

/// A range of loopback addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// The first address of the range.
    pub network: Ipv4Addr,
    /// How many leading bits all addresses of the range share.
    pub prefix: u8,
}

impl AddressRange {
    /// How many addresses the range has.
    pub fn len(&self) -> u32 {
        1_u32.checked_shl(32 - u32::from(self.prefix)).unwrap_or(u32::MAX)
    }

    /// True for a range without addresses; none exists.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The address at a position, if the range has it.
    pub fn nth(&self, index: u32) -> Option<Ipv4Addr> {
        (index < self.len()).then(|| Ipv4Addr::from(u32::from(self.network) + index))
    }

    /// Whether an address is in the range.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address).wrapping_sub(u32::from(self.network)) < self.len()
    }
}

impl std::fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

/// What a node is told at its start.
#[derive(Clone)]
pub struct NodeConfig {
    /// Its way to the API server, as a user of group `system:nodes` or `system:masters`.
    pub client: kube::Client,
    /// The name of its Node object.
    pub name: String,
    /// Its own directory: Pods, their volumes and logs. Used by one node at a time.
    pub dir: PathBuf,
    /// The image store, which other instances may share.
    pub images: PathBuf,
    /// Its own address, which node ports and Pods in its network have, too.
    pub address: Ipv4Addr,
    /// Where it answers what is asked of a kubelet, if it does so at a port of its own.
    pub port: Option<u16>,
    /// Where Pods reach the API server.
    pub api: (Ipv4Addr, u16),
    /// Where Pods get their addresses from.
    pub pod_range: AddressRange,
    /// Where Services have theirs.
    pub service_range: AddressRange,
    /// How long Pods wait for the next node if this one is killed; zero ends them with it.
    pub survival: Duration,
    /// The network in which each Pod has a namespace of its own; none where they share that of the machine.
    pub network: Option<Network>,
    /// Who runs containers, where Windlass does not do that by itself.
    pub runc: Option<Runc>,
    /// Whether limits are given to the kernel where this user may do that.
    pub cgroups: bool,
    /// How many Pods it accepts.
    pub pods_max: u32,
    /// The DNS domain that names of Services end with, usually `cluster.local`.
    pub cluster_domain: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_its_addresses() {
        let range = AddressRange { network: Ipv4Addr::new(127, 64, 128, 0), prefix: 17 };
        assert_eq!(range.len(), 32768);
        assert_eq!(range.nth(1), Some(Ipv4Addr::new(127, 64, 128, 1)));
        assert_eq!(range.nth(32768), None);
        assert!(range.contains(Ipv4Addr::new(127, 64, 255, 255)));
        assert!(!range.contains(Ipv4Addr::new(127, 64, 0, 1)));
    }
}
