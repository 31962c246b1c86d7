//! What is remembered of upgrades, in the status of a resource.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is known of the upgrades of a resource: `status.upgrade`. All that is remembered is here, nothing is in a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpgradeStatus {
    /// The version that was last seen to be in place as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// The version that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<String>,
    /// The last revision that was healthy for its window, and what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<KnownGood>,
    /// The revision that is being tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<Trial>,
    /// The revision that failed, for as long as it is asked for: it is not tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_revision: Option<FailedRevision>,
}

/// A revision that is known to be good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownGood {
    /// What it is called by: a hash of what it is.
    pub hash: String,
    /// What people call it.
    pub version: String,
    /// Since when it is known to be good.
    pub at: Time,
    /// What it is. Its ControllerRevision says the same; neither is lost with the other.
    pub revision: Value,
}

/// A revision that is being tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// What it is called by.
    pub hash: String,
    /// What people call it.
    pub version: String,
    /// Since when.
    pub started_at: Time,
    /// Since when it is healthy without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_since: Option<Time>,
    /// Since when a member cannot be started at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// Since when it is known to be late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_since: Option<Time>,
    /// What keeps it from being healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
}

/// A revision that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRevision {
    /// What it is called by.
    pub hash: String,
    /// What people call it.
    pub version: String,
    /// What happened.
    pub reason: String,
    /// When.
    pub at: Time,
    /// The version that took its place; none if there was none to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<String>,
    /// The value of the annotation that asks for another attempt, as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}

/// The schema of the record, as the API checks it.
pub(crate) fn schema() -> JSONSchemaProps {
    let text = |about: &str| json!({"type": "string", "description": about});
    let time = |about: &str| json!({"type": "string", "format": "date-time", "description": about});
    let (hash, version) = (text("A hash of what it is."), text("What people call it."));
    let schema = json!({
        "type": "object",
        "description": "What is known of upgrades.",
        "properties": {
            "currentVersion": text("The version that was last seen to be in place as a whole."),
            "desiredVersion": text("The version that is asked for."),
            "lastKnownGood": {
                "type": "object",
                "description": "The last revision that was healthy for its window.",
                "required": ["hash", "version", "at", "revision"],
                "properties": {
                    "hash": hash, "version": version,
                    "at": time("Since when it is known to be good."),
                    "revision": {"description": "What it is.", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
            "inProgress": {
                "type": "object",
                "description": "The revision that is being tried.",
                "required": ["hash", "version", "startedAt"],
                "properties": {
                    "hash": hash, "version": version,
                    "startedAt": time("Since when."),
                    "healthySince": time("Since when it is healthy without a break."),
                    "failingSince": time("Since when a member cannot be started at all."),
                    "lateSince": time("Since when it is known to be late."),
                    "blockedBy": text("What keeps it from being healthy."),
                },
            },
            "failedRevision": {
                "type": "object",
                "description": "The revision that failed, for as long as it is asked for: it is not tried again.",
                "required": ["hash", "version", "reason", "at"],
                "properties": {
                    "hash": hash, "version": version,
                    "reason": text("What happened."),
                    "at": time("When."),
                    "rolledBackTo": text("The version that took its place; none if there was none to go back to."),
                    "retry": text("The value of the annotation windlass.dev/retry-upgrade, as it was then."),
                },
            },
        },
    });
    serde_json::from_value(schema).expect("it is a schema of the API")
}
