//! The built-in kinds of the pinned Kubernetes release.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use crate::{Kind, Schema, Subresource, definition, selectable};

static KINDS: &str = include_str!("../data/kinds.json");
static METRICS_KINDS: &str = include_str!("../data/metrics.json");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(KINDS));
static METRICS: LazyLock<Table> = LazyLock::new(|| Table::read(METRICS_KINDS));

/// Groups in one version where objects are stored in another: the group and the version that is not stored.
const NOT_STORED: [(&str, &str); 2] = [("autoscaling", "v1"), ("events.k8s.io", "v1")];

const META_PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The table of the built-in kinds.
pub fn builtin() -> &'static Table {
    &TABLE
}

/// The kinds of `metrics.k8s.io`, which not every cluster serves.
pub fn metrics() -> &'static Table {
    &METRICS
}

/// Kinds in the order in which discovery publishes them.
#[derive(Debug)]
pub struct Table {
    kinds: Vec<Arc<Kind>>,
}

impl Table {
    fn read(text: &str) -> Self {
        let entries: Vec<Entry> = serde_json::from_str(text).expect("the generated table of kinds is valid");
        Self { kinds: entries.into_iter().map(|entry| Arc::new(entry.into())).collect() }
    }

    /// All kinds: the core group first, in each group the preferred version first.
    pub fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The kind with the resource name `plural`.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.plural == plural && kind.version == version && kind.group == group)
    }

    /// The kind by its name.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|known| known.kind == kind && known.version == version && known.group == group)
    }

    /// The name of the OpenAPI definition of any known kind: of resources, lists, options and subresources
    /// (`Scale`, `Eviction`, `TokenRequest`, `DeleteOptions`, `Status` …).
    pub fn definition_name(&self, group: &str, version: &str, kind: &str) -> Option<String> {
        let mut members = self.kinds.iter().chain(metrics().kinds());
        let member = members.find(|known| known.version == version && known.group == group);
        let package = member.and_then(|known| known.definition.rsplit_once('.')).map(|(package, _)| package);
        // The options of a delete belong to the group and version of what is deleted.
        let shared = kind == "DeleteOptions"
            || matches!((group, version), ("" | "meta.k8s.io", "v1") | ("meta.k8s.io", "v1beta1"));
        let meta = shared.then_some(META_PACKAGE);
        let names = package.into_iter().chain(meta).map(|package| format!("{package}.{kind}"));
        names.into_iter().find(|name| crate::structs::find(name).is_some() || definition(name).is_some())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    group: String,
    version: String,
    kind: String,
    list_kind: Option<String>,
    plural: String,
    singular: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    namespaced: bool,
    verbs: Vec<String>,
    storage_version_hash: Option<String>,
    definition: String,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

impl From<Entry> for Kind {
    fn from(entry: Entry) -> Kind {
        Kind {
            list_kind: entry.list_kind.unwrap_or_default(),
            storage_version: !NOT_STORED.contains(&(entry.group.as_str(), entry.version.as_str())),
            schema: Schema::of_definition(entry.definition.clone()),
            selectable_fields: selectable::fields(&entry.group, &entry.kind),
            columns: Vec::new(),
            group: entry.group,
            version: entry.version,
            kind: entry.kind,
            plural: entry.plural,
            singular: entry.singular,
            short_names: entry.short_names,
            categories: entry.categories,
            namespaced: entry.namespaced,
            verbs: entry.verbs,
            subresources: entry.subresources,
            storage_version_hash: entry.storage_version_hash,
            definition: entry.definition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_resource_and_by_name() {
        let deployments = builtin().find("apps", "v1", "deployments").unwrap();
        assert_eq!((deployments.kind.as_str(), deployments.list_kind.as_str()), ("Deployment", "DeploymentList"));
        assert_eq!(deployments.short_names, ["deploy"]);
        assert!(deployments.namespaced && deployments.has_verb("deletecollection"));
        assert_eq!(deployments.subresource("scale").unwrap().group, "autoscaling");
        assert_eq!(builtin().by_kind("", "v1", "Pod").unwrap().plural, "pods");
        assert!(builtin().find("apps", "v1beta1", "deployments").is_none());
    }

    #[test]
    fn only_stable_versions_are_served() {
        for kind in builtin().kinds() {
            assert!(["v1", "v2"].contains(&kind.version.as_str()), "{} {}", kind.group, kind.version);
        }
    }

    #[test]
    fn definitions_are_named_for_kinds_without_a_resource() {
        let check = |(group, version, kind), expect: &str| {
            assert_eq!(builtin().definition_name(group, version, kind).as_deref(), Some(expect));
        };
        check(("", "v1", "DeleteOptions"), "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
        check(("apps", "v1", "DeleteOptions"), "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
        check(("", "v1", "PodList"), "io.k8s.api.core.v1.PodList");
        check(("autoscaling", "v1", "Scale"), "io.k8s.api.autoscaling.v1.Scale");
        check(("authentication.k8s.io", "v1", "TokenRequest"), "io.k8s.api.authentication.v1.TokenRequest");
        check(
            ("metrics.k8s.io", "v1beta1", "PodMetricsList"),
            "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetricsList",
        );
        assert_eq!(builtin().definition_name("example.com", "v1", "Memcached"), None);
    }
}
