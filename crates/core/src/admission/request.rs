//! What somebody asks of the API.

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::{Deserialize, Serialize};

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is new.
    Create,
    /// It is changed.
    Update,
    /// It is to go.
    Delete,
    /// Something is done with it, such as `kubectl exec`.
    Connect,
}

impl Operation {
    /// The word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// What somebody asks of the API, besides the new object.
#[derive(Clone, Debug)]
pub struct Request<K> {
    /// What is to be done.
    pub operation: Operation,
    /// The object until now; there is none when it is new.
    pub old: Option<K>,
    /// Who asks.
    pub user: UserInfo,
    /// Whether nothing is going to be stored whatever the answer is.
    pub dry_run: bool,
    /// The namespace of the object.
    pub namespace: Option<String>,
    /// The name of the object; empty if it is to be generated.
    pub name: String,
}

impl<K> Request<K> {
    /// Who asks, by name.
    pub fn user_name(&self) -> &str {
        self.user.username.as_deref().unwrap_or_default()
    }

    /// Whether who asks is a member of `group`.
    pub fn is_by_member_of(&self, group: &str) -> bool {
        self.user.groups.iter().flatten().any(|member_of| member_of == group)
    }
}
