//! The kinds of an existing operator, and what it makes of them.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's name, which is also its field manager. It stays the same in every step: what one step has applied, the
/// next one may change.
pub(crate) const NAME: &str = "site-operator";

/// A page, kept in a ConfigMap.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "site.example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
pub(crate) struct PageSpec {
    pub(crate) title: String,
    pub(crate) text: String,
}

/// Where a page is found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PageStatus {
    pub(crate) path: String,
}

/// A team, which writes pages by an account of its own.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "site.example.com", version = "v1", kind = "Team", namespaced)]
pub(crate) struct TeamSpec {
    pub(crate) motto: String,
}

/// What a page is kept in.
pub(crate) fn config_map(name: String, title: &str, text: &str) -> ConfigMap {
    let html = format!("<h1>{title}</h1>{text}");
    ConfigMap {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        data: Some([("index.html".to_owned(), html)].into()),
        ..ConfigMap::default()
    }
}

/// Where it is found.
pub(crate) fn path(title: &str) -> String {
    format!("/{}", title.to_lowercase().replace(' ', "-"))
}

/// The account of a team.
pub(crate) fn account(team: &Team) -> ServiceAccount {
    let metadata = ObjectMeta {
        name: Some(team.name_any()),
        annotations: Some([("site.example.com/motto".to_owned(), team.spec.motto.clone())].into()),
        owner_references: team.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    ServiceAccount { metadata, ..ServiceAccount::default() }
}
