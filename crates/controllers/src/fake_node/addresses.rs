//! The addresses of Pods on the node that only seems to run them; nothing answers there.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;

/// Addresses that were given and may not be known to everybody yet, by the UIDs of their Pods.
#[derive(Default)]
pub(super) struct Addresses(Mutex<HashMap<String, String>>);

impl Addresses {
    /// The address of `pod`: one that neither the Pods in `all` have nor another one was just given.
    pub(super) fn give<'a>(&self, pod: &Pod, all: impl Iterator<Item = &'a Pod>) -> String {
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut present, mut taken) = (HashSet::from([uid(pod)]), HashSet::new());
        for other in all {
            present.insert(uid(other));
            taken.extend(other.status.as_ref().and_then(|status| status.pod_ip.clone()));
        }
        given.retain(|uid, _| present.contains(uid));
        if let Some(known) = given.get(&uid(pod)) {
            return known.clone();
        }
        taken.extend(given.values().cloned());
        let address = range().find(|address| !taken.contains(address)).unwrap_or_default();
        given.insert(uid(pod), address.clone());
        address
    }
}

/// All addresses there are for Pods.
fn range() -> impl Iterator<Item = String> {
    (1..=u16::MAX - 1).map(|number| {
        let [high, low] = number.wrapping_add(1).to_be_bytes();
        format!("10.244.{high}.{low}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, address: Option<&str>) -> Pod {
        serde_json::from_value(json!({"metadata": {"uid": uid}, "status": {"podIP": address}})).unwrap()
    }

    #[test]
    fn no_two_pods_get_one_address_before_it_is_known() {
        let addresses = Addresses::default();
        let all = [pod("a", None), pod("b", None), pod("c", Some("10.244.0.3"))];
        assert_eq!(addresses.give(&all[0], all.iter()), "10.244.0.2");
        assert_eq!(addresses.give(&all[1], all.iter()), "10.244.0.4");
        assert_eq!(addresses.give(&all[0], all.iter()), "10.244.0.2");
        // A Pod that is gone needs none.
        assert_eq!(addresses.give(&pod("d", None), all[1..].iter()), "10.244.0.2");
    }

    #[test]
    fn addresses_are_those_of_hosts() {
        let addresses: Vec<String> = range().collect();
        assert_eq!(addresses.first().map(String::as_str), Some("10.244.0.2"));
        assert_eq!(addresses.last().map(String::as_str), Some("10.244.255.255"));
    }
}
