//! The status of a resource: what every operator reports, and what only this one does.

use std::ops::Deref;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::condition;
use crate::upgrade::UpgradeStatus;

/// Conditions and the observed generation, beside the fields of the author's own status type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "What was last observed.")]
pub struct Status<S> {
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
    /// What is known of upgrades, if the operator declares them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)] // Only the definitions of kinds that are upgraded have it: see `Chain::upgraded`.
    pub upgrade: Option<UpgradeStatus>,
    /// What the author reports.
    #[serde(flatten)]
    pub own: S,
}

/// The status type of a kind whose author reports nothing of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoStatus {}

impl<S> Status<S> {
    /// The same status with what another version of the kind reports.
    pub fn map<T>(self, own: impl FnOnce(S) -> T) -> Status<T> {
        let Self { observed_generation, conditions, upgrade, own: before } = self;
        Status { observed_generation, conditions, upgrade, own: own(before) }
    }
}

impl<S> Deref for Status<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.own
    }
}

/// Status is output: one that cannot be read (an older operator wrote it) must not keep the object from being read.
impl<'de, S: DeserializeOwned + Default> Deserialize<'de> for Status<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let observed_generation = fields.remove("observedGeneration").and_then(|value| value.as_i64());
        let conditions = fields.remove("conditions").and_then(|value| serde_json::from_value(value).ok());
        let upgrade = fields.remove("upgrade").and_then(|value| serde_json::from_value(value).ok());
        let own = serde_json::from_value(Value::Object(fields)).unwrap_or_default();
        Ok(Self { observed_generation, conditions: conditions.unwrap_or_default(), upgrade, own })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Own {
        nodes: Vec<String>,
    }

    #[test]
    fn what_another_version_wrote_is_read_as_far_as_it_goes() {
        let check = |given: Value, generation, nodes: &[&str]| {
            let status: Status<Own> = serde_json::from_value(given).unwrap();
            assert_eq!(status.observed_generation, generation);
            assert_eq!(status.nodes, nodes);
        };
        check(json!({"observedGeneration": 2, "nodes": ["a"]}), Some(2), &["a"]);
        check(json!({"observedGeneration": 2}), Some(2), &[]);
        check(json!({"nodes": 5, "conditions": [{"bad": true}]}), None, &[]);
    }
}
