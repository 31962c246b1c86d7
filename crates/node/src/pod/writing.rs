//! What a Pod's task writes: the Pod's status, its deletion, and the files that all its containers share.

use std::fs;
use std::io;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::spec::hostname;
use super::status;
use super::worker::Worker;
use crate::names::{Cluster, Resolver};

/// Conditions that the node decides; all others are left alone.
const OWN_CONDITIONS: [&str; 7] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodResizePending",
    "PodResizeInProgress",
];

/// What the hosts file of a Pod begins with, and that of one that shares the network of the machine.
const HOSTS: &str = "# Kubernetes-managed hosts file.";
const HOSTS_OF_MACHINE: &str = "# Kubernetes-managed hosts file (host network).";

impl Worker {
    /// Writes the status if it is not what was written last; false if that has to be tried again.
    pub(super) async fn write_status(&mut self) -> bool {
        let basis = basis(&self.pod, self.written.as_ref());
        let status = status::status(&basis, &self.observed, self.addresses(), Timestamp::now());
        if self.written.as_ref() == Some(&status) {
            return true;
        }
        let patch = json!({ "metadata": { "uid": self.pod.uid() }, "status": explicit(&status, &basis) });
        let name = self.pod.name_any();
        match self.pods_api().patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await {
            Ok(_) => {
                self.written = Some(status);
                true
            }
            // Deleted, or replaced by another Pod of that name: the watch says so soon.
            Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => true,
            Err(error) => {
                tracing::warn!(%error, pod = name, "the status of a Pod was not written");
                false
            }
        }
    }

    /// Writes `hosts`, `hostname` and `resolv.conf` of the Pod.
    pub(super) fn write_node_files(&self) -> io::Result<()> {
        let directory = self.context.pod_directory(&self.pod.uid().unwrap_or_default());
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("hostname"), format!("{}\n", hostname(&self.pod)))?;
        let (spec, namespace) = (self.pod.spec.clone().unwrap_or_default(), self.pod.namespace().unwrap_or_default());
        let domain = &self.context.config.cluster_domain;
        let cluster = self.context.name_server.get().map(|server| Cluster { server: server.address, domain });
        let resolver = Resolver::of_machine().for_pod(&spec, &namespace, cluster);
        fs::write(directory.join("resolv.conf"), resolver.to_string())?;
        self.write_hosts();
        Ok(())
    }

    /// Writes `hosts`: the Pod's own name, and unless every resolver finds the name server, the names of Services. The
    /// file is written in place, as containers have it mounted.
    pub(super) fn write_hosts(&self) {
        let Some(addresses) = self.addresses() else { return };
        let directory = self.context.pod_directory(&self.pod.uid().unwrap_or_default());
        if !directory.is_dir() {
            return;
        }
        let namespace = self.pod.namespace().unwrap_or_default();
        let name = hostname(&self.pod);
        let spec = self.pod.spec.clone().unwrap_or_default();
        let mut text = if spec.host_network == Some(true) {
            format!("{HOSTS_OF_MACHINE}\n{}\n", fs::read_to_string("/etc/hosts").unwrap_or_default().trim_end())
        } else {
            let qualified = spec.subdomain.map(|subdomain| {
                format!("{name}.{subdomain}.{namespace}.svc.{}\t", self.context.config.cluster_domain)
            });
            let qualified = qualified.unwrap_or_default();
            format!("{HOSTS}\n127.0.0.1\tlocalhost\n{}\t{qualified}{name}\n", addresses.pod)
        };
        for alias in spec.host_aliases.iter().flatten() {
            let names = alias.hostnames.clone().unwrap_or_default().join("\t");
            text.push_str(&format!("{}\t{names}\n", alias.ip));
        }
        if !self.context.name_server.get().is_some_and(|server| server.well_known) {
            text.push_str(&self.context.directory.hosts(&namespace));
        }
        let path = directory.join("hosts");
        if fs::read(&path).is_ok_and(|now| now == text.as_bytes()) {
            return;
        }
        if let Err(error) = fs::write(&path, text) {
            tracing::warn!(%error, path = %path.display(), "names of Services are out of date");
        }
    }
}

/// Deletes the object of a Pod that has ended; false if that has to be tried again.
pub(super) async fn delete(pods: &Api<Pod>, pod: &Pod) -> bool {
    let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
    let options =
        DeleteParams { grace_period_seconds: Some(0), preconditions: Some(preconditions), ..DeleteParams::default() };
    match pods.delete(&pod.name_any(), &options).await {
        Ok(_) => true,
        Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => true,
        Err(error) => {
            tracing::warn!(%error, pod = pod.name_any(), "a Pod that has ended was not deleted");
            false
        }
    }
}

/// The Pod with the status that was written last: the watch may still show an older one.
fn basis(pod: &Pod, written: Option<&PodStatus>) -> Pod {
    let mut basis = pod.clone();
    let (Some(written), Some(status)) = (written, &mut basis.status) else { return basis };
    let foreign = status.conditions.take().unwrap_or_default();
    let foreign = foreign.into_iter().filter(|condition| !is_own(condition));
    status.conditions = Some(written.conditions.iter().flatten().cloned().chain(foreign).collect());
    status.start_time.clone_from(&written.start_time);
    basis
}

fn is_own(condition: &PodCondition) -> bool {
    OWN_CONDITIONS.contains(&condition.type_.as_str())
}

/// The status as a patch: a reason or a condition that no longer applies is removed, not left behind.
fn explicit(status: &PodStatus, before: &Pod) -> Value {
    let mut value = serde_json::to_value(status).expect("a status is plain data");
    let clear = |object: &mut Value| {
        if let Some(object) = object.as_object_mut() {
            object.entry("reason").or_insert(Value::Null);
            object.entry("message").or_insert(Value::Null);
        }
    };
    clear(&mut value);
    for condition in value.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        clear(condition);
    }
    let told = |type_: &str| status.conditions.iter().flatten().any(|condition| condition.type_ == type_);
    let had = before.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let gone = had.filter(|condition| is_own(condition) && !told(&condition.type_));
    let gone: Vec<Value> = gone.map(|condition| json!({"type": condition.type_, "$patch": "delete"})).collect();
    if let Some(conditions) = value.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.extend(gone);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_went_away_is_cleared() {
        let condition =
            PodCondition { type_: "Ready".to_owned(), status: "True".to_owned(), ..PodCondition::default() };
        let status = PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() };
        let before: Pod = serde_json::from_value(json!({"status": {"conditions": [
            {"type": "PodResizePending", "status": "True"}, {"type": "Ready", "status": "False"},
            {"type": "example.com/mine", "status": "True"}]}}))
        .unwrap();
        let value = explicit(&status, &before);
        assert_eq!(value["reason"], Value::Null);
        assert!(value["conditions"][0].as_object().unwrap().contains_key("message"));
        assert_eq!(value["conditions"][1], json!({"type": "PodResizePending", "$patch": "delete"}));
        assert_eq!(value["conditions"].as_array().unwrap().len(), 2);
    }
}
