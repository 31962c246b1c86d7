//! Who is cut off from whom, for those parts of the node through which connections go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tokio::sync::watch;

use crate::proxy::Key;
use crate::sandbox::Cut;

/// Who is cut off from whom.
#[derive(Debug, Clone)]
pub(crate) struct Cuts(watch::Sender<Arc<Separations>>);

/// All cuts: of Pods by their address, of Services by their name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Separations {
    pub(crate) pods: BTreeMap<Ipv4Addr, Cut>,
    pub(crate) services: BTreeMap<Key, Cut>,
}

impl Default for Cuts {
    fn default() -> Self {
        Self(watch::channel(Arc::default()).0)
    }
}

impl Cuts {
    /// Replaces what is known.
    pub(crate) fn set(&self, separations: Separations) {
        self.0.send_if_modified(|now| {
            let changed = **now != separations;
            *now = Arc::new(separations);
            changed
        });
    }

    /// Follows it.
    pub(crate) fn follow(&self) -> watch::Receiver<Arc<Separations>> {
        self.0.subscribe()
    }

    /// Whether the Pod at an address is cut off from the API server.
    pub(crate) fn is_cut_from_api(&self, pod: Ipv4Addr, (address, port): (Ipv4Addr, u16)) -> bool {
        self.0.borrow().pods.get(&pod).is_some_and(|cut| cut.covers(SocketAddrV4::new(address, port)))
    }

    /// Returns once a connection through a Service cannot be any more.
    pub(crate) async fn until_separated(&self, service: &Key, client: IpAddr, backend: IpAddr) {
        let mut follow = self.follow();
        let separated = follow.wait_for(|now| now.separate(service, client, backend)).await.is_ok();
        if !separated {
            std::future::pending::<()>().await;
        }
    }
}

impl Separations {
    /// Whether a client does not get to an endpoint of a Service.
    pub(crate) fn separate(&self, service: &Key, client: IpAddr, backend: IpAddr) -> bool {
        let of_pod = |one: IpAddr, other: IpAddr| match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                one != other && self.pods.get(&one).is_some_and(|cut| cut.covers_all_of(other))
            }
            _ => false,
        };
        let of_service = self.services.get(service).is_some_and(|cut| match client {
            IpAddr::V4(client) => cut.covers_all_of(client),
            IpAddr::V6(_) => cut.everything,
        });
        of_service || of_pod(client, backend) || of_pod(backend, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Peer;

    #[test]
    fn a_cut_of_either_side_separates() {
        let [one, other, third] = [1, 2, 3].map(|last| Ipv4Addr::new(127, 64, 128, last));
        let only = |address| Cut { everything: false, peers: [Peer { address, port: None }].into() };
        let web = ("n".to_owned(), "web".to_owned());
        let cuts = Separations { pods: [(one, only(other))].into(), services: [(web.clone(), only(third))].into() };
        let none = ("n".to_owned(), "none".to_owned());
        let check =
            |service: &Key, client: Ipv4Addr, backend: Ipv4Addr| cuts.separate(service, client.into(), backend.into());
        assert!(check(&none, one, other) && check(&none, other, one));
        assert!(!check(&none, third, other) && !check(&none, one, one));
        assert!(check(&web, third, other) && !check(&web, other, third));
    }
}
