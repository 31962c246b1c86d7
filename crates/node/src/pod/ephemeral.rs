//! Ephemeral containers: added to a Pod that runs, to look into it. They run once, and the Pod does not depend on them.

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod};
use kube::ResourceExt;

use super::container::Job;
use super::refusal::Refusal;
use crate::sandbox::Neighbour;

/// The ephemeral containers of a Pod, as containers that are never started again.
pub(crate) fn containers(pod: &Pod) -> Vec<Container> {
    all(pod).filter_map(as_container).collect()
}

/// A container of a Pod, of whatever sort.
pub(super) fn find(pod: &Pod, name: &str) -> Option<Container> {
    let spec = pod.spec.as_ref()?;
    let mut lasting = spec.init_containers.iter().flatten().chain(&spec.containers);
    let found = lasting.find(|container| container.name == name).cloned();
    found.or_else(|| containers(pod).into_iter().find(|container| container.name == name))
}

/// The container that an ephemeral one is to look into, which must run.
pub(super) fn neighbour(job: &Job) -> Result<Option<Neighbour>, Refusal> {
    let Some(target) = target(&job.pod, &job.container.name) else { return Ok(None) };
    let live = job.context.live.find(&job.pod.uid().unwrap_or_default(), target);
    let live = live.ok_or_else(|| Refusal {
        reason: "CreateContainerError",
        message: format!("target container {target} does not run"),
    })?;
    let is_contained = live.inside.contained.is_some();
    Ok(Some(Neighbour { init: live.inside.init, supervisor: live.inside.supervisor, is_contained }))
}

/// The container whose processes an ephemeral container wants to see.
fn target<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let target = all(pod).find(|container| container.name == name)?.target_container_name.as_deref();
    target.filter(|target| !target.is_empty())
}

/// Whether a container of a Pod is ephemeral.
pub(crate) fn is_ephemeral(pod: &Pod, name: &str) -> bool {
    all(pod).any(|container| container.name == name)
}

/// What of a Pod an event is about that tells of a container.
pub(super) fn field(pod: &Pod, name: &str) -> String {
    let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let list = match init.any(|container| container.name == name) {
        true => "initContainers",
        false if is_ephemeral(pod, name) => "ephemeralContainers",
        false => "containers",
    };
    format!("spec.{list}{{{name}}}")
}

fn all(pod: &Pod) -> impl Iterator<Item = &EphemeralContainer> {
    pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten())
}

/// Both have the same fields, but for the target.
fn as_container(ephemeral: &EphemeralContainer) -> Option<Container> {
    let fields = serde_json::to_value(ephemeral).ok()?;
    let container: Container = serde_json::from_value(fields).ok()?;
    Some(Container { restart_policy: Some("Never".to_owned()), ..container })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ephemeral_container_is_one_that_runs_once() {
        let pod: Pod = serde_json::from_value(serde_json::json!({"spec": {"containers": [{"name": "c"}],
            "ephemeralContainers": [{"name": "e", "image": "i", "command": ["x"], "tty": true, "targetContainerName": "c"}]}}))
        .unwrap();
        let found = containers(&pod);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].image.as_deref(), found[0].tty), (Some("i"), Some(true)));
        assert_eq!(found[0].restart_policy.as_deref(), Some("Never"));
        assert_eq!((target(&pod, "e"), target(&pod, "c")), (Some("c"), None));
        assert!(is_ephemeral(&pod, "e") && !is_ephemeral(&pod, "c"));
    }
}
