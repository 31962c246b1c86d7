//! Addresses of Pods: each has one of its own while it lives.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use crate::config::AddressRange;

/// The addresses of a range that are in use.
#[derive(Debug, Clone)]
pub(crate) struct AddressPool {
    range: AddressRange,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    taken: BTreeSet<Ipv4Addr>,
    last: u32,
}

/// An address; free again when dropped.
#[derive(Debug)]
pub(crate) struct PodAddress {
    address: Ipv4Addr,
    used: Arc<Mutex<Used>>,
}

impl AddressPool {
    pub(crate) fn new(range: AddressRange) -> Self {
        Self { range, used: Arc::default() }
    }

    /// The next free address after the last one given, so that one is not reused at once; none if all are taken.
    pub(crate) fn take(&self) -> Option<PodAddress> {
        let mut used = self.used.lock().expect("the lock is never held across a panic");
        // The first and the last address of a range are no host's.
        let last = self.range.len().saturating_sub(2);
        let order = (used.last + 1..=last).chain(1..=used.last.min(last));
        let (index, address) = order
            .filter_map(|index| Some((index, self.range.nth(index)?)))
            .find(|(_, address)| !used.taken.contains(address))?;
        used.last = index;
        used.taken.insert(address);
        Some(PodAddress { address, used: Arc::clone(&self.used) })
    }

    /// An address that the Pod had before, if it is free.
    pub(crate) fn take_again(&self, address: Ipv4Addr) -> Option<PodAddress> {
        let mut used = self.used.lock().expect("the lock is never held across a panic");
        let free = self.range.contains(address) && used.taken.insert(address);
        free.then(|| PodAddress { address, used: Arc::clone(&self.used) })
    }
}

impl PodAddress {
    pub(crate) fn get(&self) -> Ipv4Addr {
        self.address
    }
}

impl Drop for PodAddress {
    fn drop(&mut self) {
        self.used.lock().expect("the lock is never held across a panic").taken.remove(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_come_back_late() {
        let pool = AddressPool::new(AddressRange { network: Ipv4Addr::new(127, 64, 128, 0), prefix: 29 });
        let first = pool.take().unwrap();
        assert_eq!(first.get(), Ipv4Addr::new(127, 64, 128, 1));
        drop(first);
        let second = pool.take().unwrap();
        assert_eq!(second.get(), Ipv4Addr::new(127, 64, 128, 2), "the address just freed is not the next");
        let rest: Vec<PodAddress> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(rest.len(), 5);
        assert!(pool.take().is_none());
        drop(second);
        assert!(pool.take().is_some());
    }
}
