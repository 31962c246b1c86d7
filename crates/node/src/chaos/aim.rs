//! Whom a `Chaos` means: which Pods, which addresses, and whether it can be done to them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use rand::seq::SliceRandom;

use super::plan::Plan;
use super::resource::{Disconnect, Fault, Mode, Side, Target};
use super::{ANNOTATION, DISK};
use crate::pod::Live;
use crate::proxy::{Key, World};
use crate::sandbox::{Cut, Disk, Faults, PEERS_MAX, Peer};

/// Whether a target or a side means a Pod by labels or name.
pub(super) fn means(selector: Option<&LabelSelector>, names: &[String], pod: &Pod) -> bool {
    let by_labels = selector.is_some_and(|selector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(pod.labels()))
    });
    by_labels || names.iter().any(|name| *name == pod.name_any())
}

impl Target {
    /// Whether it means a Pod of its namespace.
    pub(super) fn means(&self, namespace: &str, pod: &Pod) -> bool {
        let is_here = pod.namespace().as_deref() == Some(namespace);
        is_here && pod.metadata.deletion_timestamp.is_none() && means(self.selector.as_ref(), &self.pods, pod)
    }
}

/// Which of those that are meant it is this time. `taken` of them are suffering on other nodes already.
pub(super) fn pick<T>(mut all: Vec<T>, mode: Mode, percent: Option<u8>, taken: usize) -> Vec<T> {
    let count = match mode {
        Mode::All => return all,
        Mode::One => 1_usize.saturating_sub(taken).min(all.len()),
        Mode::Percent => (all.len() * usize::from(percent.unwrap_or(100))).div_ceil(100),
    };
    all.shuffle(&mut rand::rng());
    all.truncate(count);
    all
}

/// What is around those who suffer.
pub(super) struct Surroundings<'a> {
    pub(super) namespace: &'a str,
    pub(super) pods: &'a [std::sync::Arc<Pod>],
    pub(super) world: &'a World,
    pub(super) api: (Ipv4Addr, u16),
}

impl Surroundings<'_> {
    /// The addresses of the other sides of a cut.
    pub(super) fn cut(&self, disconnect: &Disconnect) -> Cut {
        if disconnect.from.is_empty() {
            return Cut::from_everything();
        }
        let peers: BTreeSet<Peer> = disconnect.from.iter().flat_map(|side| self.peers(side)).take(PEERS_MAX).collect();
        Cut { everything: false, peers }
    }

    fn peers(&self, side: &Side) -> Vec<Peer> {
        let whole = |address| Peer { address, port: None };
        match side {
            Side::ApiServer {} => {
                let (address, port) = self.api;
                let own = Peer { address, port: Some(port) };
                std::iter::once(own).chain(self.ports(&("default".to_owned(), "kubernetes".to_owned()))).collect()
            }
            Side::Selector(selector) => self.addresses(|pod| means(Some(selector), &[], pod)).map(whole).collect(),
            Side::Pod(name) => self.addresses(|pod| pod.name_any() == *name).map(whole).collect(),
            Side::Service(name) => {
                let key = (self.namespace.to_owned(), name.clone());
                let endpoints = self.world.slices_of(&key).flat_map(|slice| slice.endpoints.iter().flatten());
                let endpoints = endpoints.flat_map(|endpoint| &endpoint.addresses).filter_map(|text| text.parse().ok());
                self.own_address(&key).into_iter().chain(endpoints).map(whole).collect()
            }
            Side::Address(text) => text.parse().ok().map(whole).into_iter().collect(),
        }
    }

    fn addresses(&self, is_meant: impl Fn(&Pod) -> bool) -> impl Iterator<Item = Ipv4Addr> {
        let here = self.pods.iter().filter(|pod| pod.namespace().as_deref() == Some(self.namespace));
        here.filter(move |pod| is_meant(pod)).filter_map(|pod| address(pod))
    }

    fn own_address(&self, key: &Key) -> Option<Ipv4Addr> {
        self.world.services.get(key)?.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
    }

    /// The ports of a Service's own address.
    fn ports(&self, key: &Key) -> Vec<Peer> {
        let Some(address) = self.own_address(key) else { return Vec::new() };
        let spec = self.world.services.get(key).and_then(|service| service.spec.as_ref());
        let ports = spec.into_iter().flat_map(|spec| spec.ports.iter().flatten());
        ports.map(|port| Peer { address, port: u16::try_from(port.port).ok() }).collect()
    }
}

/// The address of a Pod.
pub(super) fn address(pod: &Pod) -> Option<Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

/// What a container suffers by a fault; a kill is not suffered but happens.
///
/// # Errors
/// Why it cannot be done to this container.
pub(super) fn faults(fault: &Fault, plan: &Plan, live: &Live, cut: Option<&Cut>) -> Result<Faults, String> {
    let inside = &live.inside;
    if !inside.takes_faults {
        return Err("an earlier release of Windlass started it: restart it once".to_owned());
    }
    let mut faults = Faults::default();
    match fault {
        Fault::Kill {} => {}
        Fault::Pause {} => faults.paused = true,
        Fault::Skew(_) => faults.skew = plan.skew,
        Fault::Disconnect(_) => {
            if inside.confined.is_none() {
                return Err(unconfined(inside.network.is_some()));
            }
            faults.cut = cut.cloned();
        }
        Fault::Fill(fill) => {
            faults.disk = Some(Disk { full: places(live, Some(&fill.volume))?, slow: Vec::new() });
        }
        Fault::Slow(slow) => {
            let delay = plan.delay.unwrap_or_default();
            let slow = places(live, slow.volume.as_deref())?.into_iter().map(|place| (place, delay)).collect();
            faults.disk = Some(Disk { full: Vec::new(), slow });
        }
    }
    Ok(faults)
}

fn unconfined(has_network: bool) -> String {
    let why = match has_network {
        true => "its Pod has a network of its own (--isolation namespaces or runc), in which Windlass answers no calls",
        false => "its Pod has the machine's network, or the kernel does not let Windlass answer its calls",
    };
    format!("it cannot be disconnected: {why}")
}

/// Where a container has a volume; without one, all of its files.
fn places(live: &Live, volume: Option<&str>) -> Result<Vec<PathBuf>, String> {
    if !live.inside.asks_of_files {
        return Err(format!(
            "its writes are not asked about: give its Pod the annotation {ANNOTATION}: {DISK} (in the template of what makes \
             the Pod); it counts from the Pod's start"
        ));
    }
    let Some(volume) = volume else { return Ok(vec!["/".into()]) };
    let mounted = mount_paths(&live.inside.container, volume);
    if mounted.is_empty() { Err(format!("it has no volume {volume:?} mounted")) } else { Ok(mounted) }
}

fn mount_paths(container: &Container, volume: &str) -> Vec<PathBuf> {
    let mounts = container.volume_mounts.iter().flatten().filter(|mount| mount.name == volume);
    mounts.map(|mount| PathBuf::from(&mount.mount_path)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::proxy::tests::{service, slice, world};

    fn pod(name: &str, app: &str, address: &str) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": name, "namespace": "n", "labels": {"app": app}},
            "status": {"podIP": address}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn cut(from: Value) -> Vec<String> {
        let pods = [pod("a", "db", "127.64.128.1"), pod("b", "web", "127.64.128.2")];
        let world = world(&[service()], &[slice(true)]);
        let around = Surroundings { namespace: "n", pods: &pods, world: &world, api: ([127, 64, 0, 1].into(), 6443) };
        let disconnect: Disconnect = serde_json::from_value(json!({"from": from})).unwrap();
        let cut = around.cut(&disconnect);
        let port = |peer: &Peer| peer.port.map(|port| format!(":{port}")).unwrap_or_default();
        cut.peers.iter().map(|peer| format!("{}{}", peer.address, port(peer))).collect()
    }

    #[test]
    fn the_other_side_is_found() {
        assert_eq!(cut(json!([{"apiServer": {}}])), ["127.64.0.1:6443"]);
        assert_eq!(cut(json!([{"selector": {"matchLabels": {"app": "db"}}}])), ["127.64.128.1"]);
        assert_eq!(cut(json!([{"pod": "b"}, {"address": "10.0.0.1"}])), ["10.0.0.1", "127.64.128.2"]);
        assert_eq!(cut(json!([{"service": "web"}])), ["127.64.0.9", "127.64.128.1", "127.64.128.2"]);
    }

    #[test]
    fn as_many_are_picked_as_were_asked_for() {
        let count = |mode, percent, taken| pick(vec![1, 2, 3], mode, percent, taken).len();
        assert_eq!(count(Mode::All, None, 0), 3);
        assert_eq!([count(Mode::One, None, 0), count(Mode::One, None, 1)], [1, 0]);
        assert_eq!([1, 34, 67, 100].map(|percent| count(Mode::Percent, Some(percent), 0)), [1, 2, 3, 3]);
    }

    #[test]
    fn targets_are_of_their_namespace_and_alive() {
        let by_name = Target { pods: vec!["a".to_owned()], ..Target::default() };
        let mut one = pod("a", "db", "127.64.128.1");
        assert!(by_name.means("n", &one) && !by_name.means("other", &one));
        Arc::make_mut(&mut one).metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::now()));
        assert!(!by_name.means("n", &one));
    }
}
