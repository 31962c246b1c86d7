//! The kind `Memcached`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// A memcached cluster.
#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "cache.example.com", version = "v1alpha1", kind = "Memcached", namespaced, status = "MemcachedStatus")]
#[kube(shortname = "mc", category = "all")]
#[kube(scale(
    spec_replicas_path = ".spec.size",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
#[kube(printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#))]
#[kube(printcolumn(
    name = "Status",
    type_ = "string",
    priority = 1,
    json_path = r#".status.conditions[?(@.type=="Ready")].message"#
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
pub struct MemcachedSpec {
    /// How many memcached processes to run.
    #[schemars(range(min = 1, max = 16))]
    #[serde(default = "one")]
    pub size: i32,
    /// The image to run; memcached:1.6 if it is not said.
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = ("!self.contains(' ')", "an image has no spaces"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

fn one() -> i32 {
    1
}

/// What was last observed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemcachedStatus {
    /// The names of the Pods.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How many Pods there are.
    #[serde(default)]
    pub replicas: i32,
    /// The label selector of the Pods, for autoscalers.
    #[serde(default)]
    pub selector: String,
    /// What holds for the resource.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
