//! The resource that asks for faults, `Chaos` of `windlass.dev/v1alpha1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Faults for Pods or a Service of the resource's own namespace.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "Chaos",
    plural = "chaos",
    singular = "chaos",
    namespaced,
    status = "ChaosStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Fault","type":"string","jsonPath":".status.fault"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Round","type":"integer","jsonPath":".status.round"}"#,
    printcolumn = r#"{"name":"Ends","type":"date","jsonPath":".status.endsAt"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ChaosSpec {
    /// Who suffers.
    pub target: Target,
    /// Which of the Pods that are meant.
    #[serde(default)]
    pub mode: Mode,
    /// How many of them, from 1 to 100 of a hundred, with the mode Percent; rounded up, and counted by each node for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<u8>,
    /// What is done to them.
    pub fault: Fault,
    /// How long it lasts, such as 30s or 1m30s: at most an hour. A kill has no duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Whether it is done again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Who suffers: Pods by their labels or names, or a Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Pods with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Pods of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// A Service: its addresses, not the Pods behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Only this container of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// Which of the Pods that are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Each of them.
    #[default]
    All,
    /// One, by chance, and another one in the next round.
    One,
    /// A part of them, by chance.
    Percent,
}

/// What is done; exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The program is killed as by a crash (exit code 137) and started again as its restart policy says.
    Kill {},
    /// All processes stop, as if the machine gave them no time.
    Pause {},
    /// Nothing gets through, in either direction; connections are broken off.
    Disconnect(Disconnect),
    /// No file of a volume can grow: writes fail with "no space left on device".
    Fill(Fill),
    /// Every write and flush takes longer.
    Slow(Slow),
    /// The time of day is wrong.
    Skew(Skew),
}

/// What something is cut off from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disconnect {
    /// The other sides; none means everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Side>,
}

/// The other side of a cut; exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The API server.
    ApiServer {},
    /// Pods of the namespace with these labels.
    Selector(LabelSelector),
    /// A Pod of this name.
    Pod(String),
    /// A Service and the Pods behind it.
    Service(String),
    /// An IPv4 address.
    Address(String),
}

/// Which volume is full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fill {
    /// The name of the volume in the Pod.
    pub volume: String,
}

/// What is slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Slow {
    /// By how much, such as 200ms; at most a minute.
    pub delay: String,
    /// The name of the volume in the Pod; all files if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
}

/// How wrong the clock is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skew {
    /// By how much, such as 5m or -1h; whole seconds.
    pub by: String,
}

/// How it is done again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repeat {
    /// From the beginning of one round to that of the next, such as 5m.
    pub every: String,
    /// How many rounds there are in all.
    #[schemars(range(min = 1, max = 1000))]
    pub times: u32,
}

/// What has been done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChaosStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: Phase,
    /// The name of the fault.
    #[serde(default)]
    pub fault: String,
    /// What there is to say, for people.
    #[serde(default)]
    pub message: String,
    /// The round that runs, or was the last.
    #[serde(default)]
    pub round: u32,
    /// When this round began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Time>,
    /// When the next begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Time>,
    /// Who suffers, or has suffered, in this round.
    #[serde(default)]
    pub victims: Vec<Victim>,
    /// The generation of the specification that this is about.
    #[serde(default)]
    pub observed_generation: i64,
}

/// How far a chaos is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// No node has begun.
    #[default]
    Pending,
    /// A round runs.
    Active,
    /// The next round is waited for.
    Waiting,
    /// It is over, and everything is undone.
    Ended,
    /// It cannot be done; the message says why.
    Failed,
}

/// One who suffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Victim {
    /// The Pod, or the Service.
    pub name: String,
    /// Its uid.
    #[serde(default)]
    pub uid: String,
    /// The container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// The node that it is on.
    pub node: String,
    /// What has become of it.
    pub state: VictimState,
    /// When it began.
    pub since: Time,
    /// When it was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Why something could not be done, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What has become of a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VictimState {
    /// Ordered; whether it can be done is not known yet.
    Ordered,
    /// It suffers.
    Suffering,
    /// It is being undone.
    Mending,
    /// It was done and is undone; or it was a kill, which leaves nothing to undo.
    Done,
    /// It could not be done; nothing of it is left.
    Refused,
}

impl VictimState {
    /// Whether something may still be wrong.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Ordered | Self::Suffering | Self::Mending)
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_the_resource() {
        let spec: ChaosSpec = serde_json::from_value(json!({
            "target": {"selector": {"matchLabels": {"app": "x"}}},
            "fault": {"disconnect": {"from": [{"apiServer": {}}, {"service": "db"}]}},
            "duration": "30s",
        }))
        .unwrap();
        let from = vec![Side::ApiServer {}, Side::Service("db".to_owned())];
        assert_eq!((spec.fault, spec.mode), (Fault::Disconnect(Disconnect { from }), Mode::All));
        assert_eq!(serde_json::to_value(Fault::Kill {}).unwrap(), json!({"kill": {}}));
    }

    #[test]
    fn the_definition_wants_exactly_one_fault() {
        let schema = serde_json::to_value(Chaos::crd()).unwrap();
        let spec = &schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let faults = &spec["properties"]["fault"];
        assert_eq!(faults["oneOf"].as_array().map(Vec::len), Some(6), "{faults:#}");
        assert_eq!(faults["type"], "object");
    }
}
