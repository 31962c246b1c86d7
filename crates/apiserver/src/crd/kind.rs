//! What a definition makes: the kinds that are served.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;
use windlass_schema::{Column, Kind, Schema, Subresource};

use super::{
    conversion::{Conversion, ConversionWebhook},
    definition::{Definition, Version},
    scale::ScalePaths,
};
use crate::{cel::Rules, registry::Served, table::CustomColumn};

/// The verbs that custom resources answer to.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of parts of an object.
const PART_VERBS: &[&str] = &["get", "patch", "update"];

/// What only custom kinds have, in one of their versions.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// The version that objects are stored in.
    pub(crate) storage_version: String,
    /// The schema of that version, where it is not this one: it drops what it does not know.
    pub(crate) storage_schema: Option<Schema>,
    /// How many versions are served.
    pub(crate) served_versions: usize,
    /// Whether status is a part of its own.
    pub(crate) has_status: bool,
    /// Where the scale is found.
    pub(crate) scale: Option<ScalePaths>,
    /// The CEL rules.
    pub(crate) rules: LazyRules,
    /// The columns of its tables.
    pub(crate) columns: Vec<CustomColumn>,
    /// How objects get from one version to another.
    pub(crate) conversion: Conversion,
    /// Whether the definition is being deleted; nothing new is made then.
    pub(crate) is_terminating: bool,
    /// What to tell clients of a deprecated version.
    pub(crate) warning: Option<String>,
}

/// Rules that are compiled when the first object comes.
#[derive(Debug)]
pub(crate) struct LazyRules {
    schema: Value,
    compiled: OnceLock<Result<Rules, String>>,
}

impl LazyRules {
    /// The compiled rules.
    ///
    /// # Errors
    /// A rule that was accepted once cannot be compiled now.
    pub(crate) fn get(&self) -> Result<&Rules, &str> {
        let compile = || Rules::compile(&self.schema).map_err(|errors| errors[0].to_string());
        self.compiled.get_or_init(compile).as_ref().map_err(String::as_str)
    }
}

/// Why a definition makes no kinds.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KindError {
    #[error("version {version}: the schema cannot be read")]
    Schema { version: String, source: serde_json::Error },
    #[error("no version is marked as the storage version")]
    NoStorageVersion,
}

/// The kinds that a definition serves, the preferred version first.
pub(crate) fn kinds(definition: &Definition) -> Result<Vec<Served>, KindError> {
    let storage_version = definition.storage_version().ok_or(KindError::NoStorageVersion)?;
    let mut versions: Vec<&Version> = definition.spec.versions.iter().filter(|version| version.served).collect();
    versions.sort_by(|left, right| super::version::compare(&right.name, &left.name));
    versions.into_iter().map(|version| served(definition, version, storage_version)).collect()
}

fn served(definition: &Definition, version: &Version, storage_version: &str) -> Result<Served, KindError> {
    let raw = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let open = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let raw = raw.unwrap_or(&open);
    // Definitions are checked when they are written; a stored one need not pass again, so that a start is quick.
    let schema =
        Schema::from_trusted(raw).map_err(|source| KindError::Schema { version: version.name.clone(), source })?;
    let scale = version.subresources.as_ref().and_then(|parts| parts.scale.as_ref()).map(ScalePaths::new);
    let custom = CustomKind {
        storage_version: storage_version.to_owned(),
        storage_schema: storage_schema(definition, version),
        served_versions: definition.spec.versions.iter().filter(|version| version.served).count(),
        has_status: version.subresources.as_ref().is_some_and(|parts| parts.status.is_some()),
        scale,
        rules: LazyRules { schema: raw.clone(), compiled: OnceLock::new() },
        columns: columns(version),
        conversion: conversion(definition),
        is_terminating: definition.is_deleting(),
        warning: warning(definition, version),
    };
    let kind = kind(definition, version, schema, &custom);
    Ok(Served::custom_kind(Arc::new(kind), Arc::new(custom)))
}

fn storage_schema(definition: &Definition, version: &Version) -> Option<Schema> {
    let stored = definition.spec.versions.iter().find(|stored| stored.storage && stored.name != version.name)?;
    let raw = stored.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    Schema::from_trusted(raw).ok()
}

fn kind(definition: &Definition, version: &Version, schema: Schema, custom: &CustomKind) -> Kind {
    // Accepted names are what others may rely on; wanted names that clash are not served.
    let names = &definition.status.accepted_names;
    let names = if names.plural.is_empty() { &definition.spec.names } else { names };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut subresources = Vec::new();
    if custom.scale.is_some() {
        subresources.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: words(PART_VERBS),
        });
    }
    if custom.has_status {
        subresources.push(Subresource {
            name: "status".into(),
            group: definition.spec.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            verbs: words(PART_VERBS),
        });
    }
    let verbs = VERBS.iter().filter(|verb| !custom.is_terminating || **verb != "create");
    Kind {
        group: definition.spec.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        list_kind: names.list_kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: definition.spec.scope == "Namespaced",
        verbs: words(&verbs.copied().collect::<Vec<_>>()),
        subresources,
        storage_version: version.storage,
        storage_version_hash: Some(storage_version_hash(definition, &custom.storage_version)),
        definition: String::new(),
        schema,
        selectable_fields: version
            .selectable_fields
            .iter()
            .map(|field| field.json_path.trim_start_matches('.').to_owned())
            .collect(),
        columns: version.additional_printer_columns.iter().map(column).collect(),
    }
}

fn column(raw: &Value) -> Column {
    let text = |member: &str| raw.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    Column {
        name: text("name"),
        r#type: text("type"),
        format: text("format"),
        description: text("description"),
        priority: raw.get("priority").and_then(Value::as_i64).unwrap_or(0),
        json_path: text("jsonPath"),
    }
}

fn columns(version: &Version) -> Vec<CustomColumn> {
    if version.additional_printer_columns.is_empty() {
        return vec![CustomColumn::age()];
    }
    // Validation has refused paths that cannot be read.
    version.additional_printer_columns.iter().filter_map(|raw| CustomColumn::parse(raw).ok()).collect()
}

fn conversion(definition: &Definition) -> Conversion {
    match &definition.spec.conversion {
        Some(conversion) if conversion.strategy == "Webhook" => {
            let webhook = conversion.webhook.as_ref().and_then(|raw| ConversionWebhook::deserialize(raw).ok());
            Conversion::Webhook(webhook.unwrap_or_default())
        }
        _ => Conversion::None,
    }
}

fn warning(definition: &Definition, version: &Version) -> Option<String> {
    version.deprecated.then(|| {
        let kind = format!("{}/{} {}", definition.spec.group, version.name, definition.spec.names.kind);
        version.deprecation_warning.clone().unwrap_or_else(|| format!("{kind} is deprecated"))
    })
}

/// A hash of what objects are stored as, which tells clients when to migrate them.
fn storage_version_hash(definition: &Definition, storage_version: &str) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let text = format!("{}/{storage_version}/{}", definition.spec.group, definition.spec.names.kind);
    let digest = sha2::Sha256::digest(text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}
