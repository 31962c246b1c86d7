//! The addresses of a node in somebody else's cluster: its own, the API server's, and those of Pods and Services.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::{Api, Client};
use windlass_node::AddressRange;
use windlass_node::network::{Network, NetworkError};
use windlass_node::runc::Runc;

use super::JoinConfig;
use crate::{ClusterRange, Directory, Isolation, StartError};

const HTTPS: u16 = 443;

/// The addresses that matter to a node.
pub(super) struct Addresses {
    pub(super) own: Ipv4Addr,
    /// Where Pods reach the API server.
    pub(super) api: (Ipv4Addr, u16),
    pub(super) pods: AddressRange,
    pub(super) services: AddressRange,
    /// Ranges to choose from, the one of `pods` first.
    candidates: Vec<ClusterRange>,
}

impl Addresses {
    /// Finds them out.
    pub(super) async fn find(config: &JoinConfig, client: &Client) -> Result<Self, StartError> {
        let api = api(config).await?;
        let own = match config.address {
            Some(address) => address,
            None => source(api)?,
        };
        if config.isolation.has_networks() && api.0.is_loopback() {
            return Err(StartError::UnreachableApi { address: api.into() });
        }
        let candidates = match config.network {
            Some(range) => vec![range],
            None => {
                let mut hasher = DefaultHasher::new();
                config.dir.hash(&mut hasher);
                ClusterRange::candidates(config.isolation, hasher.finish()).collect()
            }
        };
        let services = services(client).await?;
        let pods = pods(candidates[0]);
        Ok(Self { own, api, pods, services, candidates })
    }

    /// Takes what of the machine Pods need for their addresses.
    pub(super) fn begin(
        &mut self,
        directory: &Directory,
        isolation: Isolation,
    ) -> Result<(Option<Network>, Option<Runc>), StartError> {
        let node = directory.node();
        let runc = (isolation == Isolation::Runc).then(|| Runc::find(&node)).transpose()?;
        if !isolation.has_networks() {
            return Ok((None, runc));
        }
        let mut outcome = Err(StartError::NoRange { port: self.api.1 });
        for range in &self.candidates {
            self.pods = pods(*range);
            outcome = Network::begin(&node, self.pods, self.services).map_err(StartError::Network);
            if !matches!(outcome, Err(StartError::Network(NetworkError::Overlap { .. }))) {
                break;
            }
        }
        Ok((Some(outcome?), runc))
    }
}

fn pods(range: ClusterRange) -> AddressRange {
    let (network, prefix) = range.pods();
    AddressRange { network, prefix }
}

/// The API server as the kubeconfig names it.
async fn api(config: &JoinConfig) -> Result<(Ipv4Addr, u16), StartError> {
    let url = &config.api.cluster_url;
    let (host, port) = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(HTTPS));
    let unknown = || StartError::UnknownApi { url: url.to_string() };
    let found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await.map_err(|_| unknown())?;
    let v4 = |address: SocketAddr| match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    };
    found.filter_map(v4).next().map(|address| (address, port)).ok_or_else(unknown)
}

/// The address of this machine that packets to `api` come from.
fn source(api: (Ipv4Addr, u16)) -> Result<Ipv4Addr, StartError> {
    let look = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(api)?;
        socket.local_addr()
    };
    match look() {
        Ok(SocketAddr::V4(address)) => Ok(*address.ip()),
        _ => Err(StartError::UnreachableApi { address: api.into() }),
    }
}

/// The range of Services, as the cluster says it.
async fn services(client: &Client) -> Result<AddressRange, StartError> {
    let ranges: Api<ServiceCIDR> = Api::all(client.clone());
    let ranges = ranges.list(&Default::default()).await.map_err(StartError::Api)?;
    let texts =
        ranges.items.iter().filter_map(|range| range.spec.as_ref()).flat_map(|spec| spec.cidrs.iter().flatten());
    let found = texts.filter_map(|text| parse(text)).next();
    found.ok_or(StartError::NoServiceRange)
}

fn parse(text: &str) -> Option<AddressRange> {
    let (network, prefix) = text.split_once('/')?;
    Some(AddressRange { network: network.parse().ok()?, prefix: prefix.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_range_of_the_fourth_protocol_is_read() {
        assert_eq!(parse("10.96.0.0/12"), Some(AddressRange { network: [10, 96, 0, 0].into(), prefix: 12 }));
        assert_eq!(parse("fd00::/108"), None);
    }

    #[test]
    fn what_is_on_this_machine_is_reached_from_there() {
        assert_eq!(source((Ipv4Addr::new(127, 0, 0, 1), 1)).unwrap(), Ipv4Addr::new(127, 0, 0, 1));
    }
}
