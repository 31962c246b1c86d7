//! Pods that are on their way out: no new connection goes to one as long as a Service has others.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, RwLock};

/// Addresses of Pods that end. The node knows it before the endpoints tell, and before it sends the first signal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving(Arc<RwLock<BTreeMap<IpAddr, usize>>>);

/// While this lives, its address is passed over.
#[derive(Debug)]
pub(crate) struct Departure {
    leaving: Leaving,
    address: IpAddr,
}

impl Leaving {
    /// Lets new connections pass an address over.
    pub(crate) fn enter(&self, address: Ipv4Addr) -> Departure {
        let address = IpAddr::V4(address);
        *self.0.write().expect("the lock is never held across a panic").entry(address).or_default() += 1;
        Departure { leaving: self.clone(), address }
    }

    /// Whether an address is one to pass over.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.read().expect("the lock is never held across a panic").contains_key(&address)
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let mut leaving = self.leaving.0.write().expect("the lock is never held across a panic");
        if let Some(count) = leaving.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                leaving.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_passed_over_until_its_last_departure_is_over() {
        let (leaving, address) = (Leaving::default(), Ipv4Addr::LOCALHOST);
        let (one, other) = (leaving.enter(address), leaving.enter(address));
        drop(one);
        assert!(leaving.has(address.into()));
        drop(other);
        assert!(!leaving.has(address.into()));
    }
}
