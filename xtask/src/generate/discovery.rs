//! The kinds that the stable group versions serve, with their discovery facts.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openapi::{Definitions, KINDS, is_stable};
use super::source::Source;

/// One served kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) list_kind: Option<String>,
    pub(super) plural: String,
    pub(super) singular: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_version_hash: Option<String>,
    pub(super) definition: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subresources: Vec<Subresource>,
}

#[derive(Serialize)]
pub(super) struct Subresource {
    name: String,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    group: Option<String>,
    version: Option<String>,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    storage_version_hash: Option<String>,
}

/// The kinds of every stable group version, in the order in which upstream publishes its groups.
pub(super) fn kinds(source: &Source, definitions: &Definitions) -> anyhow::Result<Vec<Kind>> {
    let directory = source.module("k8s.io/kubernetes").join("api/discovery");
    let groups: Groups = read(&directory, "apis.json")?;
    let mut kinds = group_version(&directory, ("", "v1"), definitions)?;
    for group in &groups.groups {
        for Version { version } in group.versions.iter().filter(|version| is_stable(&version.version)) {
            kinds.extend(group_version(&directory, (&group.name, version), definitions)?);
        }
    }
    Ok(kinds)
}

/// A JSON array with a line for each kind, so that a change of version reads as a diff.
pub(super) fn render(kinds: &[Kind]) -> anyhow::Result<String> {
    let lines = kinds.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

fn group_version(
    directory: &Path,
    (group, version): (&str, &str),
    definitions: &Definitions,
) -> anyhow::Result<Vec<Kind>> {
    let file = if group.is_empty() { format!("api__{version}.json") } else { format!("apis__{group}__{version}.json") };
    let resources: Resources = read(directory, &file)?;
    let mut kinds: Vec<Kind> = Vec::new();
    for resource in resources.resources {
        if let Some((plural, name)) = resource.name.split_once('/') {
            let parent =
                kinds.iter_mut().find(|kind| kind.plural == plural).context("a subresource without a resource")?;
            parent.subresources.push(Subresource {
                name: name.to_owned(),
                group: resource.group.unwrap_or_else(|| group.to_owned()),
                version: resource.version.unwrap_or_else(|| version.to_owned()),
                kind: resource.kind,
                verbs: resource.verbs,
            });
            continue;
        }
        let list_kind = format!("{}List", resource.kind);
        kinds.push(Kind {
            definition: definition(definitions, (group, version, &resource.kind))
                .with_context(|| format!("{group}/{version} {} has no definition", resource.kind))?,
            list_kind: definition(definitions, (group, version, &list_kind)).map(|_| list_kind),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.kind,
            plural: resource.name,
            singular: resource.singular_name,
            short_names: resource.short_names,
            categories: resource.categories,
            namespaced: resource.namespaced,
            verbs: resource.verbs,
            storage_version_hash: resource.storage_version_hash,
            subresources: Vec::new(),
        });
    }
    Ok(kinds)
}

/// The name of the definition of a kind.
fn definition(definitions: &Definitions, (group, version, kind): (&str, &str, &str)) -> Option<String> {
    let is_kind =
        |candidate: &Value| candidate["group"] == group && candidate["version"] == version && candidate["kind"] == kind;
    let found =
        definitions.iter().find(|(_, schema)| schema[KINDS].as_array().is_some_and(|kinds| kinds.iter().any(is_kind)));
    found.map(|(name, _)| name.clone())
}

fn read<T: for<'a> Deserialize<'a>>(directory: &Path, file: &str) -> anyhow::Result<T> {
    let content = std::fs::read(directory.join(file)).with_context(|| format!("reading {file}"))?;
    serde_json::from_slice(&content).with_context(|| format!("parsing {file}"))
}
