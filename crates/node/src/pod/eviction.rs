//! Ends Pods that store more on the node's disk than they may.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use tokio_util::task::AbortOnDropHandle;

use super::container::Update;
use super::worker::Worker;
use crate::quantity;
use crate::volume;

/// How often a Pod with a limit is looked at, at most; one with many files is looked at less often.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_SHARE: u32 = 20;
/// The reason in the status of the Pod.
pub(super) const EVICTED: &str = "Evicted";
/// How long an evicted Pod gets to end.
pub(super) const GRACE: Duration = Duration::from_secs(1);
const STORAGE: &str = "ephemeral-storage";

/// What may hold no more than so many bytes, and what is said if it does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    directories: Vec<PathBuf>,
    bytes: u64,
    message: String,
}

impl Worker {
    /// Begins to look at what the Pod stores, if something of it is limited.
    pub(super) fn watch_storage(&mut self) {
        let uid = self.pod.uid().unwrap_or_default();
        let limits = limits(&self.pod, &self.context.pod_directory(&uid), &self.context.log_directory(&*self.pod));
        if limits.is_empty() {
            return;
        }
        let (updates, limits) = (self.sender.clone(), Arc::new(limits));
        self.storage = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let message = excess(limits).await;
            let _ = updates.send((String::new(), Update::Evicted(message))).await;
        })));
    }

    /// Ends the Pod for good.
    pub(super) fn evict(&mut self, message: String) {
        self.context.events.warning(&*self.pod, None, EVICTED, message.clone());
        self.observed.failed.get_or_insert((EVICTED.to_owned(), message));
    }
}

/// Waits until a limit is exceeded.
async fn excess(limits: Arc<Vec<Limit>>) -> String {
    loop {
        let begun = Instant::now();
        let looked = Arc::clone(&limits);
        let exceeded = tokio::task::spawn_blocking(move || {
            let over = |limit: &&Limit| {
                let sizes = limit.directories.iter().map(|directory| volume::size(directory));
                sizes.sum::<u64>() > limit.bytes
            };
            looked.iter().find(over).map(|limit| limit.message.clone())
        });
        if let Ok(Some(message)) = exceeded.await {
            return message;
        }
        tokio::time::sleep(LOOK_EVERY.max(begun.elapsed() * LOOK_SHARE)).await;
    }
}

/// The limits of a Pod in the order in which kubelet looks at them: volumes, the Pod, its containers.
fn limits(pod: &Pod, directory: &std::path::Path, logs: &std::path::Path) -> Vec<Limit> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let empty = spec.volumes.iter().flatten().filter(|volume| volume.empty_dir.is_some());
    let place = |name: &str| directory.join("volumes").join(name);
    let mut limits = Vec::new();
    for volume in empty.clone() {
        let limit = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref());
        let Some((bytes, text)) = limit.and_then(|limit| Some((bytes(&limit.0)?, &limit.0))) else { continue };
        let message = format!("Usage of EmptyDir volume \"{}\" exceeds the limit \"{text}\". ", volume.name);
        limits.push(Limit { directories: vec![place(&volume.name)], bytes, message });
    }
    let of = |container: &Container| {
        let limit = container.resources.as_ref()?.limits.as_ref()?.get(STORAGE)?;
        Some((bytes(&limit.0)?, limit.0.clone()))
    };
    let own = |name: &str| vec![directory.join("containers").join(name), logs.join(name)];
    let all: Option<Vec<(u64, String)>> = spec.containers.iter().map(of).collect();
    if let Some(all) = all.filter(|all| all.len() > 1) {
        let total = all.iter().map(|(bytes, _)| bytes).sum();
        let message = format!("Pod ephemeral local storage usage exceeds the total limit of containers {total}. ");
        let volumes = empty.map(|volume| place(&volume.name));
        let directories = volumes.chain(spec.containers.iter().flat_map(|container| own(&container.name))).collect();
        limits.push(Limit { directories, bytes: total, message });
    }
    for container in &spec.containers {
        let Some((bytes, text)) = of(container) else { continue };
        let message = format!("Container {} exceeded its local ephemeral storage limit \"{text}\". ", container.name);
        limits.push(Limit { directories: own(&container.name), bytes, message });
    }
    limits
}

/// A limit in bytes.
fn bytes(quantity: &str) -> Option<u64> {
    quantity::limit(quantity, "1")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_come_before_the_pod_and_the_pod_before_containers() {
        let limit = |text: &str| json!({"limits": {"ephemeral-storage": text}});
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "w", "emptyDir": {}}],
            "containers": [{"name": "a", "resources": limit("2Mi")}, {"name": "b", "resources": limit("1k")}]}}))
        .unwrap();
        let limits = limits(&pod, Path::new("/p"), Path::new("/l"));
        let bytes: Vec<u64> = limits.iter().map(|limit| limit.bytes).collect();
        assert_eq!(bytes, [1 << 20, (2 << 20) + 1000, 2 << 20, 1000]);
        assert_eq!(limits[0].message, "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
        assert_eq!(limits[1].directories.len(), 6);
        assert_eq!(limits[3].directories, [Path::new("/p/containers/b"), Path::new("/l/b")]);
    }

    #[test]
    fn a_pod_without_limits_is_not_looked_at() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"volumes": [{"name": "w", "emptyDir": {}}],
            "containers": [{"name": "a"}]}}))
        .unwrap();
        assert_eq!(limits(&pod, Path::new("/p"), Path::new("/l")), []);
    }
}
