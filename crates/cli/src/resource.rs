//! Resources as people name them: plural, singular, short name, `resource.group`, `resource/name`.

use std::collections::HashSet;

use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};

use crate::failure::Failure;

/// One served resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    pub(crate) namespaced: bool,
    listable: bool,
}

impl Resource {
    /// The address of the collection or, with a name, of one object.
    pub(crate) fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        let scope = match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("/namespaces/{namespace}"),
            None => String::new(),
        };
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{root}{scope}/{}{name}", self.plural)
    }

    /// `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployment.apps/x`, as kubectl prints objects.
    pub(crate) fn label(&self, name: &str) -> String {
        let singular = if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() };
        if self.group.is_empty() { format!("{singular}/{name}") } else { format!("{singular}.{}/{name}", self.group) }
    }

    fn answers_to(&self, word: &str) -> bool {
        let (word, group) = word.split_once('.').map_or((word, None), |(word, group)| (word, Some(group)));
        let named = word == self.plural
            || word == self.singular
            || word.eq_ignore_ascii_case(&self.kind)
            || self.short_names.iter().any(|short| short == word);
        let grouped =
            group.is_none_or(|group| group == self.group || group == format!("{}.{}", self.version, self.group));
        named && grouped
    }
}

/// Everything that the cluster serves, in the order of preference.
pub(crate) struct Catalog(Vec<Resource>);

impl Catalog {
    /// Asks the cluster what it serves.
    pub(crate) async fn of(client: &Client) -> Result<Self, Failure> {
        let core = client.list_core_api_versions_aggregated().await?;
        let groups = client.list_api_groups_aggregated().await?;
        Ok(Self([core, groups].into_iter().flat_map(resources).collect()))
    }

    /// The resource that a word means.
    pub(crate) fn find(&self, word: &str) -> Result<&Resource, Failure> {
        let lower = word.to_lowercase();
        self.0.iter().find(|resource| resource.answers_to(&lower)).ok_or_else(|| {
            Failure::new(format!("the cluster has no resource \"{word}\""))
                .advice("`windlass get crd` lists what operators added; an operator may still be starting")
        })
    }

    /// The resource of an object's `apiVersion` and `kind`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.0.iter().find(|entry| entry.group == group && entry.version == version && entry.kind == kind)
    }

    /// The resources whose objects can be listed, each kind once, without copies of others.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Resource> {
        let mut seen = HashSet::new();
        let copies = [
            ("events.k8s.io", "Event"),
            ("", "Event"),
            ("metrics.k8s.io", "PodMetrics"),
            ("metrics.k8s.io", "NodeMetrics"),
        ];
        self.0.iter().filter(move |entry| {
            let key = (entry.group.as_str(), entry.kind.as_str());
            entry.listable && !copies.contains(&key) && seen.insert(key)
        })
    }

    /// Resolves what was typed: `pods`, `deploy,rs`, `pod/x rs/y`, `memcached x y`, or a category such as `all`.
    pub(crate) fn resolve(&self, words: &[String]) -> Result<Vec<Selection>, Failure> {
        let Some((first, rest)) = words.split_first() else { return Ok(Vec::new()) };
        if first.contains('/') {
            return words.iter().map(|word| self.one(word)).collect();
        }
        if let Some(word) = rest.iter().find(|word| word.contains('/')) {
            return Err(Failure::new(format!("\"{word}\" mixes `resource/name` with `resource name`")));
        }
        let mut selections = Vec::new();
        for word in first.split(',') {
            for resource in self.named_or_category(word)? {
                selections.push(Selection { resource, names: rest.to_vec() });
            }
        }
        Ok(selections)
    }

    fn one(&self, word: &str) -> Result<Selection, Failure> {
        let (resource, name) = word
            .split_once('/')
            .filter(|(resource, name)| !resource.is_empty() && !name.is_empty())
            .ok_or_else(|| Failure::new(format!("\"{word}\" is not of the form resource/name")))?;
        Ok(Selection { resource: self.find(resource)?.clone(), names: vec![name.to_owned()] })
    }

    fn named_or_category(&self, word: &str) -> Result<Vec<Resource>, Failure> {
        let members: Vec<Resource> =
            self.0.iter().filter(|entry| entry.categories.iter().any(|category| category == word)).cloned().collect();
        if members.is_empty() { Ok(vec![self.find(word)?.clone()]) } else { Ok(members) }
    }
}

/// A resource and the objects of it that are meant; without names, all of them.
pub(crate) struct Selection {
    pub(crate) resource: Resource,
    pub(crate) names: Vec<String>,
}

fn resources(list: APIGroupDiscoveryList) -> Vec<Resource> {
    let mut found = Vec::new();
    for group in list.items {
        let group_name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            let version_name = version.version.unwrap_or_default();
            found.extend(version.resources.into_iter().map(|entry| resource(&group_name, &version_name, entry)));
        }
    }
    found
}

fn resource(group: &str, version: &str, entry: APIResourceDiscovery) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: entry.response_kind.and_then(|kind| kind.kind).unwrap_or_default(),
        plural: entry.resource.unwrap_or_default(),
        singular: entry.singular_resource.unwrap_or_default(),
        short_names: entry.short_names,
        categories: entry.categories,
        namespaced: entry.scope.as_deref() == Some("Namespaced"),
        listable: entry.verbs.iter().any(|verb| verb == "list"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let entry = |group: &str, kind: &str, plural: &str, short: &str, categories: &[&str]| Resource {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: vec![short.into()],
            categories: categories.iter().map(|&c| c.to_owned()).collect(),
            namespaced: true,
            listable: true,
        };
        Catalog(vec![
            entry("", "Pod", "pods", "po", &["all"]),
            entry("apps", "Deployment", "deployments", "deploy", &["all"]),
            entry("", "ConfigMap", "configmaps", "cm", &[]),
        ])
    }

    fn check(words: &[&str], expect: &[&str]) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let found: Vec<String> = match catalog().resolve(&words) {
            Ok(found) => found.iter().map(|s| format!("{} {}", s.resource.plural, s.names.join(" "))).collect(),
            Err(failure) => vec![failure.message().to_owned()],
        };
        assert_eq!(found, expect, "{words:?}");
    }

    #[test]
    fn words_mean_what_they_mean_to_kubectl() {
        check(&["po"], &["pods "]);
        check(&["Pod", "x", "y"], &["pods x y"]);
        check(&["deploy,cm"], &["deployments ", "configmaps "]);
        check(&["deployments.apps"], &["deployments "]);
        check(&["deployments.v1.apps"], &["deployments "]);
        check(&["pod/x", "cm/y"], &["pods x", "configmaps y"]);
        check(&["all"], &["pods ", "deployments "]);
        check(&["nothing"], &["the cluster has no resource \"nothing\""]);
        check(&["pods", "cm/y"], &["\"cm/y\" mixes `resource/name` with `resource name`"]);
        check(&["pod/"], &["\"pod/\" is not of the form resource/name"]);
    }

    #[test]
    fn paths_follow_group_scope_and_name() {
        let catalog = catalog();
        assert_eq!(catalog.find("po").unwrap().path(Some("a"), Some("x")), "/api/v1/namespaces/a/pods/x");
        assert_eq!(catalog.find("deploy").unwrap().path(None, None), "/apis/apps/v1/deployments");
        assert_eq!(catalog.find("deploy").unwrap().label("x"), "deployment.apps/x");
    }
}
