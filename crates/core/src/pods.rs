//! A set of Pods, and what one asks about it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

/// Some Pods, in order of their names.
#[derive(Clone, Debug, Default)]
pub struct Pods(Vec<Arc<Pod>>);

impl FromIterator<Arc<Pod>> for Pods {
    fn from_iter<I: IntoIterator<Item = Arc<Pod>>>(pods: I) -> Self {
        let mut pods: Vec<_> = pods.into_iter().collect();
        pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        pods.dedup_by(|a, b| a.metadata.uid == b.metadata.uid);
        Self(pods)
    }
}

impl Pods {
    /// Those that run or will run: neither finished nor on their way out.
    #[must_use]
    pub fn active(&self) -> Self {
        self.0.iter().filter(|pod| is_active(pod)).cloned().collect()
    }

    /// Those for which `is_meant` holds.
    #[must_use]
    pub fn only(&self, is_meant: impl Fn(&Pod) -> bool) -> Self {
        self.0.iter().filter(|pod| is_meant(pod)).cloned().collect()
    }

    /// How many are ready to serve.
    pub fn ready(&self) -> u32 {
        let ready = self.0.iter().filter(|pod| is_active(pod) && is_ready(pod)).count();
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Their names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Pod> {
        self.0.iter().map(|pod| &**pod)
    }
}

fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
