//! The OpenAPI v3 definitions of the stable versions, without prose.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::{Map, Value};

use super::source::Source;

/// The definitions by name.
pub(super) type Definitions = BTreeMap<String, Value>;

/// The extension that names the kinds of a definition.
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// Definitions whose list of kinds names every group version of a server, so that it differs from document to document.
const SHARED: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"];

/// Reads the definitions of every stable group version.
pub(super) fn definitions(source: &Source) -> anyhow::Result<Definitions> {
    let directory = source.module("k8s.io/kubernetes").join("api/openapi-spec/v3");
    let mut definitions = Definitions::new();
    for entry in std::fs::read_dir(&directory).context("listing the OpenAPI documents")? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((_, version)) = name.strip_suffix("_openapi.json").and_then(|name| name.rsplit_once("__")) else {
            continue;
        };
        if !is_stable(version) {
            continue;
        }
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        if let Value::Object(schemas) = document["components"]["schemas"].take() {
            definitions.extend(schemas.into_iter().map(|(name, schema)| (name, without_prose(schema))));
        }
    }
    for name in SHARED {
        definitions.get_mut(name).and_then(Value::as_object_mut).context("a shared definition")?.remove(KINDS);
    }
    Ok(definitions)
}

/// One line for each definition: its name, a tab, its schema.
pub(super) fn render(definitions: &Definitions) -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, schema) in definitions {
        text.push_str(&format!("{name}\t{}\n", serde_json::to_string(schema)?));
    }
    Ok(text)
}

/// Whether a version is neither alpha nor beta.
pub(super) fn is_stable(version: &str) -> bool {
    version.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok())
}

fn without_prose(schema: Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(key, _)| key != "description")
                .map(|(key, value)| member(key, value))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_prose).collect(),
        other => other,
    }
}

/// The names of properties are no keywords, and defaults are data.
fn member(key: String, value: Value) -> (String, Value) {
    let value = match (key.as_str(), value) {
        ("properties", Value::Object(properties)) => Value::Object(
            properties.into_iter().map(|(name, schema)| (name, without_prose(schema))).collect::<Map<_, _>>(),
        ),
        ("default" | "enum" | "required", value) => value,
        (_, value) => without_prose(value),
    };
    (key, value)
}
