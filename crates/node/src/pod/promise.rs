//! What a Pod and its containers were promised, or are held to.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, ResourceRequirements};

/// Resources of a Pod and of its containers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Promise {
    /// By the names of containers, init containers included.
    pub(crate) containers: BTreeMap<String, ResourceRequirements>,
    /// Of the Pod as a whole.
    pub(crate) whole: Option<ResourceRequirements>,
}

/// How far a change of resources is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resize {
    /// Why what is wanted is not promised yet.
    pub(crate) pending: Option<String>,
    /// Whether what was promised is still to be given.
    pub(crate) progress: Option<Progress>,
}

/// Where a promise is that is not kept yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    Begun,
    Failed(String),
}

impl Promise {
    /// What a Pod asks for.
    pub(crate) fn wanted(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        let containers = all.map(|one| (one.name.clone(), one.resources.clone().unwrap_or_default()));
        Self { containers: containers.collect(), whole: spec.resources.clone() }
    }

    /// What an earlier life of the node had promised: of containers that run, the status tells what they have.
    pub(crate) fn recalled(pod: &Pod) -> Self {
        let mut promise = Self::wanted(pod);
        let Some(status) = &pod.status else { return promise };
        let lists = [&status.init_container_statuses, &status.container_statuses];
        let mut runs = false;
        for status in lists.into_iter().flat_map(|list| list.iter().flatten()).filter(|status| is_running(status)) {
            runs = true;
            if let (Some(own), Some(had)) = (promise.containers.get_mut(&status.name), &status.resources) {
                own.clone_from(had);
            }
        }
        if let (Some(whole), Some(had), true) = (&mut promise.whole, &status.resources, runs) {
            // The status tells of the whole also where the Pod itself says nothing of it.
            let sides = [(&mut whole.limits, &had.limits), (&mut whole.requests, &had.requests)];
            for (amounts, had) in sides.into_iter().filter_map(|(own, had)| Some((own.as_mut()?, had.as_ref()?))) {
                let known = amounts.iter_mut().filter_map(|(name, amount)| Some((amount, had.get(name)?)));
                known.for_each(|(amount, had)| amount.clone_from(had));
            }
        }
        promise
    }

    /// The Pod as if it asked for this.
    pub(crate) fn imposed(&self, pod: &Pod) -> Pod {
        let mut pod = pod.clone();
        if let Some(spec) = &mut pod.spec {
            for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
                container.resources = self.containers.get(&container.name).cloned();
            }
            spec.resources.clone_from(&self.whole);
        }
        pod
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_has_what_its_status_tells() {
        let container = |name: &str| json!({"name": name, "resources": {"limits": {"cpu": "2"}}});
        let status = |name: &str, state: &str| {
            json!({"name": name, "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {state: {"exitCode": 0}},
                "resources": {"limits": {"cpu": "1"}}})
        };
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [container("a"), container("b")]},
            "status": {"containerStatuses": [status("a", "running"), status("b", "terminated")]}}))
        .unwrap();
        let cpu = |promise: &Promise, name: &str| promise.containers[name].limits.clone().unwrap()["cpu"].0.clone();
        let recalled = Promise::recalled(&pod);
        assert_eq!((cpu(&recalled, "a").as_str(), cpu(&recalled, "b").as_str()), ("1", "2"));
        assert_eq!(Promise::wanted(&recalled.imposed(&pod)), recalled);
    }
}
