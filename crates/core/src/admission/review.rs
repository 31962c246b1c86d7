//! What API server and webhook send each other.

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Operation;

/// The envelope of questions and answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// `admission.k8s.io/v1`
    pub api_version: String,
    /// `AdmissionReview`
    pub kind: String,
    /// What the API server asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Question>,
    /// What the webhook answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Answer>,
}

/// What the API server asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Which question.
    pub uid: String,
    /// The name of the object; empty if it is to be generated.
    #[serde(default)]
    pub name: String,
    /// The namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What is to be done.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it should be.
    #[serde(default)]
    pub object: Value,
    /// The object until now.
    #[serde(default)]
    pub old_object: Value,
    /// Whether nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// What the webhook answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// To which question.
    pub uid: String,
    /// Whether it may go on.
    pub allowed: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// `JSONPatch` if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<String>,
    /// What to change, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What to tell the sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Review {
    /// The envelope of an answer.
    pub fn answered(self, response: Answer) -> Self {
        Self { request: None, response: Some(response), ..self }
    }
}
