//! The addresses of Pods on nodes that only seem to run them; nothing answers there.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use windlass_runtime::Change;

/// How many addresses there are: `10.244.0.2` and up.
const ADDRESSES: u16 = u16::MAX - 1;

/// Which Pod has which address.
#[derive(Default)]
pub(super) struct Addresses(Mutex<Book>);

#[derive(Default)]
struct Book {
    by_pod: HashMap<String, String>,
    taken: HashSet<String>,
    /// Where the search goes on, so that an address is not given again at once.
    next: u16,
}

impl Addresses {
    /// Takes in what became of a Pod.
    pub(super) fn observe(&self, change: &Change<Pod>) {
        let mut book = self.book();
        if let Some(old) = change.old.as_deref().filter(|old| change.new.as_deref().map(uid) != Some(uid(old))) {
            book.release(&uid(old));
        }
        let Some(pod) = change.new.as_deref() else { return };
        if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) {
            book.note(uid(pod), address);
        }
    }

    /// The address of `pod`: one that no other Pod has.
    pub(super) fn give(&self, pod: &Pod) -> String {
        let (mut book, uid) = (self.book(), uid(pod));
        if let Some(known) = book.by_pod.get(&uid) {
            return known.clone();
        }
        let address = book.free();
        book.note(uid, address.clone());
        address
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn note(&mut self, uid: String, address: String) {
        if self.by_pod.get(&uid) == Some(&address) {
            return;
        }
        self.release(&uid);
        self.taken.insert(address.clone());
        self.by_pod.insert(uid, address);
    }

    fn release(&mut self, uid: &str) {
        if let Some(address) = self.by_pod.remove(uid) {
            self.taken.remove(&address);
        }
    }

    /// An address that is not taken; when all are, none is better than a wrong one.
    fn free(&mut self) -> String {
        for _ in 0..ADDRESSES {
            let [high, low] = (self.next + 2).to_be_bytes();
            self.next = (self.next + 1) % ADDRESSES;
            let address = format!("10.244.{high}.{low}");
            if !self.taken.contains(&address) {
                return address;
            }
        }
        String::new()
    }
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn pod(uid: &str, address: Option<&str>) -> Pod {
        serde_json::from_value(json!({"metadata": {"uid": uid}, "status": {"podIP": address}})).unwrap()
    }

    #[test]
    fn no_two_pods_have_one_address() {
        let addresses = Addresses::default();
        let seen = |pod: Pod| Change { old: None, new: Some(Arc::new(pod)), listed: true };
        addresses.observe(&seen(pod("c", Some("10.244.0.3"))));
        assert_eq!(addresses.give(&pod("a", None)), "10.244.0.2");
        assert_eq!(addresses.give(&pod("b", None)), "10.244.0.4");
        assert_eq!(addresses.give(&pod("a", None)), "10.244.0.2");
    }

    #[test]
    fn the_address_of_a_pod_that_is_gone_is_given_again() {
        let addresses = Addresses::default();
        addresses.give(&pod("a", None));
        addresses.observe(&Change { old: Some(Arc::new(pod("a", None))), new: None, listed: false });
        let all: HashSet<String> =
            (0..ADDRESSES).map(|number| addresses.give(&pod(&number.to_string(), None))).collect();
        assert_eq!(all.len(), usize::from(ADDRESSES));
        assert!(all.contains("10.244.0.2") && all.contains("10.244.255.255"));
        assert_eq!(addresses.give(&pod("late", None)), "");
    }
}
