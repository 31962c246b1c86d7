//! What a bundle says of itself: everything that a plan needs to know before anything is installed.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Deserialize, Serialize};
use windlass_runtime::engine::Declared;

use super::Standing;
use crate::app::Program;
use crate::capability::{Capability, capability};
use crate::manifests::{self, ManifestOptions};
use crate::rbac::{Need, Scope, rules};

/// The number of this form of description.
pub(super) const FORMAT: u32 = 1;
/// Rights that are worth a look before they are granted: by group and resource.
const WEIGHTY: [(&str, &str); 9] = [
    ("", "secrets"),
    ("", "nodes"),
    ("", "pods/exec"),
    ("", "serviceaccounts/token"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];
const WEIGHTY_VERBS: [&str; 3] = ["escalate", "bind", "impersonate"];

/// What a bundle is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// The number of the form of this description.
    pub format: u32,
    /// The operator's name.
    pub name: String,
    /// The operator's version.
    pub version: String,
    /// The namespace that the operator's manifests are for.
    pub namespace: String,
    /// The kinds that it serves, in each version.
    pub provides: Vec<Api>,
    /// The kinds of others that it uses and that no cluster has by itself.
    pub requires: Vec<Api>,
    /// What it must be allowed.
    pub permissions: Permissions,
    /// What it is able to do.
    pub capability: Capability,
    /// The images that it runs.
    pub images: Vec<String>,
    /// The bundles that it can take over from.
    pub upgrades: Upgrades,
    /// The channels that it is in; the first is the default.
    pub channels: Vec<String>,
    /// Why it is no `registry+v1` bundle, if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_registry: Option<String>,
    /// The digest of each file.
    pub files: BTreeMap<String, String>,
}

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Api {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// What an operator must be allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permissions {
    /// In the namespaces whose resources it serves.
    pub served: Vec<PolicyRule>,
    /// On kinds that live in no namespace.
    pub cluster: Vec<PolicyRule>,
    /// In its own namespace.
    pub own: Vec<PolicyRule>,
    /// Those that are worth a look before they are granted.
    pub weighty: Vec<String>,
}

/// The bundles that a bundle can take over from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrades {
    /// The version before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Versions that need not be installed on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// The same, as a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

type Contents = (Option<String>, BTreeMap<String, String>);

pub(super) fn describe(
    program: &dyn Program,
    options: &ManifestOptions,
    standing: Standing,
    (not_registry, files): Contents,
) -> Description {
    Description {
        format: FORMAT,
        name: program.name().to_owned(),
        version: standing.version,
        namespace: options.namespace.clone(),
        provides: provided(program),
        requires: required(program),
        permissions: permissions(&manifests::needs(program, options)),
        capability: capability(program),
        images: vec![options.image.clone()],
        upgrades: standing.upgrades,
        channels: standing.channels,
        not_registry,
        files,
    }
}

/// Every version of every kind that the operator defines.
pub(super) fn provided(program: &dyn Program) -> Vec<Api> {
    apis(program.crds())
}

/// Every version of every kind.
pub(super) fn apis(definitions: Vec<CustomResourceDefinition>) -> Vec<Api> {
    let mut all = Vec::new();
    for definition in definitions {
        let (group, kind) = (definition.spec.group, definition.spec.names.kind);
        let api = |version: String| Api { group: group.clone(), version, kind: kind.clone() };
        all.extend(definition.spec.versions.into_iter().map(|version| api(version.name)));
    }
    all.sort();
    all
}

/// Kinds that are used, and are neither built in nor the operator's own.
pub(super) fn required(program: &dyn Program) -> Vec<Api> {
    let provided = provided(program);
    let api = |declared: Declared| {
        let it = declared.resource;
        Api { group: it.group, version: it.version, kind: it.kind }
    };
    // Groups of Kubernetes itself have no dot, or end so.
    let is_foreign = |api: &Api| api.group.contains('.') && !api.group.ends_with(".k8s.io");
    let mut all: Vec<Api> = program.kinds().into_iter().map(api).filter(is_foreign).collect();
    all.retain(|api| !provided.contains(api));
    all.sort();
    all.dedup();
    all
}

fn permissions(needs: &[Need]) -> Permissions {
    let of = |scope: Scope| rules(needs.iter().filter(|need| need.scope == scope));
    let is_weighty = |need: &&Need| {
        let right = &need.right;
        let kind = (right.group.as_str(), right.resource.as_str());
        need.names.is_empty() && (WEIGHTY.contains(&kind) || WEIGHTY_VERBS.contains(&right.verb.as_str()))
    };
    let mut weighty: Vec<String> = needs.iter().filter(is_weighty).map(|need| need.right.to_string()).collect();
    weighty.sort();
    weighty.dedup();
    Permissions { served: of(Scope::Served), cluster: of(Scope::Cluster), own: of(Scope::Own), weighty }
}
