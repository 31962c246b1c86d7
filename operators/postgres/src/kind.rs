//! The kind `PostgresCluster`: what people ask for, and what they are told.

use std::collections::BTreeMap;

use windlass::backup::Location;
use windlass::k8s_openapi::api::core::v1::ResourceRequirements;
use windlass::prelude::*;

/// A PostgreSQL cluster: one primary that takes writes, and standbys that follow it.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[resource(group = "postgres.windlass.dev", version = "v1alpha1", kind = "PostgresCluster", status = PostgresClusterStatus)]
#[resource(short = "pg", category = "all", scale(".spec.instances", ".status.instances", ".status.selector"))]
#[resource(column("Instances", path = ".spec.instances", type = "integer"), column("Ready", condition = "Ready"))]
#[resource(column("Primary", path = ".status.primary"), column("Version", path = ".status.currentVersion"))]
#[resource(column("Status", path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1))]
pub struct PostgresClusterSpec {
    /// How many servers: one is the primary, the others follow it.
    #[schema(min = 1, max = 9, default = 1)]
    pub instances: u32,
    /// The image of the servers; postgres:15 if it is not said.
    #[schema(min_length = 1, max_length = 255, cel("!self.contains(' ')", message = "an image has no spaces"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The volume of each server.
    #[serde(default)]
    pub storage: Storage,
    /// Acknowledges a commit when this many standbys have it; as soon as the primary has it, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<Synchronous>,
    /// CPU and memory of each server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Settings of the servers (postgresql.conf).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(max_properties = 200)]
    pub parameters: BTreeMap<String, String>,
    /// Where the log and base backups go, so that the cluster can be restored as of any time; nowhere if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Location>,
    /// What the data of a new cluster is made from: a backup of another one. It counts only while there is no data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// What becomes of a cluster that is deleted, and of its volumes.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// A primary that gave no sign of life for this long is replaced; one that cannot reach the API stops itself before.
    #[schema(min = 3, max = 60, default = 6)]
    pub lease_seconds: u32,
}

/// A backup, and how far to go from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Recovery {
    /// Where it is. Nothing is written there.
    pub location: Location,
    /// The backup, or a folder with backups: the last one that was complete in time is taken.
    #[schema(min_length = 1, max_length = 1024)]
    pub path: String,
    /// The time as of which the data is to be; the last that is in the archive if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub time: Option<String>,
}

/// The volume of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Storage {
    /// How large it is, such as 10Gi.
    #[schema(default = "1Gi", max_length = 32, pattern = "^[0-9]+(\\.[0-9]+)?([EPTGMK]i?)?$")]
    pub size: String,
    /// The storage class; the cluster's default if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 253)]
    pub class: Option<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self { size: "1Gi".into(), class: None }
    }
}

/// How many standbys have a commit before it is acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Synchronous {
    /// Any this many of them. Without so many, writes wait.
    #[schema(min = 1, max = 8)]
    pub any: u32,
}

/// What becomes of a cluster that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum DeletionPolicy {
    /// The data stays: a cluster of the same name goes on with it.
    #[default]
    Retain,
    /// The data is deleted.
    Delete,
    /// The servers go on, and nobody manages them: a cluster of the same name takes them over.
    Orphan,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct PostgresClusterStatus {
    /// How many servers there are.
    pub instances: u32,
    /// How many of them are ready.
    pub ready_instances: u32,
    /// The label selector of the Pods, for autoscalers.
    pub selector: String,
    /// The member that takes writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// The version that the primary runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// The timeline that the primary is on: it grows by one with each new primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<u32>,
    /// The identity of the data, which all members share.
    #[serde(rename = "systemID", skip_serializing_if = "Option::is_none")]
    pub system_id: Option<String>,
    /// What is known of the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveStatus>,
    /// The backup that the data was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<RestoredStatus>,
    /// The members, one by one.
    #[schema(keys("name"), max_items = 64)]
    pub members: Vec<MemberStatus>,
    /// The last planned change of the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switchover: Option<SwitchoverStatus>,
}

/// What the data of a cluster was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct RestoredStatus {
    /// The backup, by its name in storage.
    pub backup: String,
    /// When the last commit was made that was restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered_to: Option<String>,
}

/// What is known of a cluster's archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct ArchiveStatus {
    /// Where it is, below the top of its location.
    pub path: String,
    /// The segment of the log that was archived last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_segment: Option<String>,
    /// The segment that cannot be archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_segment: Option<String>,
}

/// What is known of a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// `primary`, `replica`, or nothing while it serves nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether its Pod is ready.
    pub ready: bool,
    /// What it does, in a word.
    pub state: String,
    /// What it waits for, or what hinders it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The timeline of its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<u32>,
    /// The version that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How far it is behind the primary, in bytes, when it last told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_bytes: Option<u64>,
    /// Whether settings wait for a restart of the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pending_restart: bool,
}

/// A planned change of the primary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct SwitchoverStatus {
    /// The annotation that asked for it.
    pub requested: String,
    /// `Waiting`, `Done` or `Refused`.
    pub state: String,
    /// Why it waits, or was refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
