//! The workload of one member: a StatefulSet of one Pod with one volume.
//!
//! One StatefulSet for each member, not one for all: then each is changed when its turn comes and not before, a Pod that is lost
//! meanwhile comes back as it was, any member can go and not only the last, and all of them are kept while the operator is away.

use std::collections::BTreeMap;

use serde_json::json;
use sha2::{Digest, Sha256};
use windlass::k8s_openapi::api::apps::v1::StatefulSetPersistentVolumeClaimRetentionPolicy;
use windlass::k8s_openapi::api::core::v1::{
    Affinity, EmptyDirVolumeSource, HTTPGetAction, PersistentVolumeClaimSpec, PodAffinityTerm, PodAntiAffinity,
    PodSecurityContext, SeccompProfile, SecretVolumeSource, Volume, VolumeMount, VolumeResourceRequirements,
    WeightedPodAffinityTerm,
};
use windlass::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass::prelude::*;

use super::{CREDENTIALS, access, metadata};
use crate::admission::DEFAULT_IMAGE;
use crate::archive::{ARCHIVE, ORIGIN};
use crate::instance::COMMAND;
use crate::kind::{DeletionPolicy, PostgresCluster};
use crate::names::{self, MEMBER, POSTGRES_PORT, REVISION, STATUS_PORT};
use crate::supervisor::Supervisor;

/// The user that the images of PostgreSQL have for it.
const USER: i64 = 999;
/// A primary writes everything and hands over in this time.
const TERMINATION_GRACE_SECONDS: i64 = 60;

/// The workload of a member.
pub(super) fn member(cluster: &PostgresCluster, member: &str, supervisor: &Supervisor) -> StatefulSet {
    let name = cluster.name_any();
    let labels = labels(&name, member);
    let revision = revision(cluster);
    let mark = BTreeMap::from([(REVISION.to_owned(), revision)]);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels.clone()),
            annotations: Some(mark.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(pod(cluster, member, supervisor)),
    };
    let policy = match cluster.spec.deletion_policy {
        DeletionPolicy::Retain | DeletionPolicy::Orphan => "Retain",
        DeletionPolicy::Delete => "Delete",
    };
    let retention = StatefulSetPersistentVolumeClaimRetentionPolicy {
        when_deleted: Some(policy.into()),
        when_scaled: Some("Retain".into()),
    };
    let spec = StatefulSetSpec {
        replicas: Some(1),
        service_name: Some(names::members_service(&name)),
        selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
        // A Pod that does not become ready is replaced when its template changes, instead of being waited for.
        pod_management_policy: Some("Parallel".into()),
        persistent_volume_claim_retention_policy: Some(retention),
        volume_claim_templates: Some(vec![claim(cluster, &labels)]),
        template,
        ..StatefulSetSpec::default()
    };
    let metadata = ObjectMeta { labels: Some(labels), annotations: Some(mark), ..metadata(&name, member) };
    StatefulSet { metadata, spec: Some(spec), ..StatefulSet::default() }
}

/// A hash of what a member is made from. The supervisor is left out: a new operator restarts no server.
pub(super) fn revision(cluster: &PostgresCluster) -> String {
    let spec = &cluster.spec;
    let restarted = cluster.annotations().get(windlass::names::RESTARTED_AT);
    let mut made_from = json!([image(cluster), spec.resources, restarted, TEMPLATE_VERSION]);
    // A cluster without one is made from what it was made from before there were archives.
    for storage in [&spec.archive, &spec.recovery.as_ref().map(|it| it.location.clone())] {
        if let (Some(storage), Some(made_from)) = (storage, made_from.as_array_mut()) {
            made_from.push(json!(storage));
        }
    }
    hex::encode(&Sha256::digest(made_from.to_string())[..5])
}

/// Counts the changes of the template that servers have to be restarted for.
const TEMPLATE_VERSION: u32 = 1;

/// The image of the servers, and of what works on their data.
pub(crate) fn image(cluster: &PostgresCluster) -> String {
    cluster.spec.image.clone().unwrap_or_else(|| DEFAULT_IMAGE.to_owned())
}

fn labels(cluster: &str, member: &str) -> BTreeMap<String, String> {
    let mut labels = names::labels(cluster);
    labels.insert(MEMBER.to_owned(), member.to_owned());
    labels
}

fn claim(cluster: &PostgresCluster, labels: &BTreeMap<String, String>) -> PersistentVolumeClaim {
    let storage = &cluster.spec.storage;
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(storage.size.clone()))]);
    PersistentVolumeClaim {
        metadata: ObjectMeta { labels: Some(labels.clone()), ..named("data") },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".into()]),
            storage_class_name: storage.class.clone(),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

fn pod(cluster: &PostgresCluster, member: &str, supervisor: &Supervisor) -> PodSpec {
    let name = cluster.name_any();
    let scratch = |name: &str, medium: Option<&str>| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: medium.map(Into::into), ..EmptyDirVolumeSource::default() }),
        ..Volume::default()
    };
    let secret = |(suffix, _): (&str, &str)| Volume {
        name: format!("{suffix}-password"),
        secret: Some(SecretVolumeSource {
            secret_name: Some(names::secret(&name, suffix)),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    };
    // Queries of several processes share memory there, more than the 64 MiB that containers have otherwise.
    let own = [scratch("sockets", None), scratch("shared-memory", Some("Memory")), supervisor.volume()];
    let mut pod = PodSpec {
        service_account_name: Some(access::members(&name)),
        termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
        security_context: Some(security()),
        affinity: Some(apart(&name)),
        containers: vec![container(cluster, member, supervisor)],
        volumes: Some(CREDENTIALS.map(secret).into_iter().chain(own).collect()),
        ..PodSpec::default()
    };
    if let Some(location) = &cluster.spec.archive {
        location.attach(&mut pod, ARCHIVE);
    }
    if let Some(recovery) = &cluster.spec.recovery {
        recovery.location.attach(&mut pod, ORIGIN);
    }
    pod
}

/// Whom servers, and what works on their data, run as.
pub(crate) fn security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

/// Members are on nodes of their own where there are enough.
fn apart(cluster: &str) -> Affinity {
    let selector = LabelSelector { match_labels: Some(names::labels(cluster)), ..LabelSelector::default() };
    let term = PodAffinityTerm {
        label_selector: Some(selector),
        topology_key: "kubernetes.io/hostname".into(),
        ..PodAffinityTerm::default()
    };
    let preferred = WeightedPodAffinityTerm { pod_affinity_term: term, weight: 100 };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![preferred]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn container(cluster: &PostgresCluster, member: &str, supervisor: &Supervisor) -> Container {
    let name = cluster.name_any();
    let namespace = cluster.namespace().unwrap_or_default();
    let args = [("--cluster", name.as_str()), ("--member", member), ("--namespace", &namespace)];
    let mount =
        |name: &str, path: &str| VolumeMount { name: name.into(), mount_path: path.into(), ..VolumeMount::default() };
    let passwords = CREDENTIALS.map(|(suffix, _)| VolumeMount {
        read_only: Some(true),
        ..mount(&format!("{suffix}-password"), &format!("/credentials/{suffix}"))
    });
    let mounts = [
        mount("data", "/data"),
        mount("sockets", "/run/postgresql"),
        mount("shared-memory", "/dev/shm"),
        supervisor.mount(),
    ];
    let port = |name: &str, number: u16| ContainerPort {
        name: Some(name.into()),
        container_port: number.into(),
        ..ContainerPort::default()
    };
    Container {
        name: "postgres".into(),
        image: Some(image(cluster)),
        command: Some(supervisor.command(COMMAND)),
        args: Some(args.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect()),
        ports: Some(vec![port("postgres", POSTGRES_PORT), port("status", STATUS_PORT)]),
        readiness_probe: Some(Probe { period_seconds: Some(1), failure_threshold: Some(2), ..probe("/readyz") }),
        liveness_probe: Some(Probe { period_seconds: Some(10), failure_threshold: Some(6), ..probe("/healthz") }),
        resources: cluster.spec.resources.clone(),
        volume_mounts: Some(mounts.into_iter().chain(passwords).collect()),
        ..Container::default()
    }
}

fn probe(path: &str) -> Probe {
    let http_get = HTTPGetAction {
        path: Some(path.into()),
        port: IntOrString::String("status".into()),
        ..HTTPGetAction::default()
    };
    Probe { http_get: Some(http_get), timeout_seconds: Some(2), ..Probe::default() }
}
