//! The files of ConfigMap, Secret, downward API and projected volumes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, DownwardAPIVolumeFile, KeyToPath, Pod, Volume, VolumeProjection};

use super::atomic::Files;
use crate::pod::{Addresses, Sources, downward};

const MODE_DEFAULT: i32 = 0o644;

/// Why the files of a volume are not known.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum PayloadError {
    #[error("configmap \"{0}\" not found")]
    ConfigMap(String),
    #[error("secret \"{0}\" not found")]
    Secret(String),
    #[error("references non-existent key: {0}")]
    Key(String),
    #[error("the downward API has no field {0:?}")]
    Field(String),
    #[error("no token of the service account could be had: {0}")]
    Token(String),
}

/// What files are made from.
pub(crate) struct Material<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) sources: &'a Sources,
    pub(crate) addresses: Addresses,
    /// Service-account tokens by path, or why there is none.
    pub(crate) tokens: &'a BTreeMap<String, Result<String, String>>,
}

/// The files of a volume that the node writes.
pub(crate) fn files(volume: &Volume, material: &Material<'_>) -> Result<Files, PayloadError> {
    let mut files = Files::new();
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        let entries = material.sources.config_map(&source.name);
        let missing = PayloadError::ConfigMap(source.name.clone());
        add(&mut files, entries, (source.items.as_deref(), source.optional, mode), missing)?;
    } else if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        let name = source.secret_name.clone().unwrap_or_default();
        let entries = material.sources.secret(&name);
        add(&mut files, entries, (source.items.as_deref(), source.optional, mode), PayloadError::Secret(name))?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        add_downward(&mut files, source.items.as_deref().unwrap_or_default(), mode, material)?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        for projection in source.sources.iter().flatten() {
            add_projection(&mut files, projection, mode, material)?;
        }
    }
    Ok(files)
}

fn add_projection(
    files: &mut Files,
    projection: &VolumeProjection,
    mode: i32,
    material: &Material<'_>,
) -> Result<(), PayloadError> {
    if let Some(source) = &projection.config_map {
        let entries = material.sources.config_map(&source.name);
        let missing = PayloadError::ConfigMap(source.name.clone());
        add(files, entries, (source.items.as_deref(), source.optional, mode), missing)?;
    }
    if let Some(source) = &projection.secret {
        let entries = material.sources.secret(&source.name);
        let missing = PayloadError::Secret(source.name.clone());
        add(files, entries, (source.items.as_deref(), source.optional, mode), missing)?;
    }
    if let Some(source) = &projection.downward_api {
        add_downward(files, source.items.as_deref().unwrap_or_default(), mode, material)?;
    }
    if let Some(source) = &projection.service_account_token {
        match material.tokens.get(&source.path) {
            Some(Ok(token)) => put(files, &source.path, token.clone().into_bytes(), mode),
            Some(Err(error)) => return Err(PayloadError::Token(error.clone())),
            None => return Err(PayloadError::Token("none was asked for".to_owned())),
        }
    }
    Ok(())
}

/// Adds all entries, or those that `items` names, each at its path.
fn add(
    files: &mut Files,
    entries: Option<BTreeMap<String, Vec<u8>>>,
    (items, optional, mode): (Option<&[KeyToPath]>, Option<bool>, i32),
    missing: PayloadError,
) -> Result<(), PayloadError> {
    let optional = optional == Some(true);
    let Some(mut entries) = entries else { return if optional { Ok(()) } else { Err(missing) } };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        for (key, content) in entries {
            put(files, &key, content, mode);
        }
        return Ok(());
    };
    for item in items {
        match entries.remove(&item.key) {
            Some(content) => put(files, &item.path, content, item.mode.unwrap_or(mode)),
            None if optional => {}
            None => return Err(PayloadError::Key(item.key.clone())),
        }
    }
    Ok(())
}

fn add_downward(
    files: &mut Files,
    items: &[DownwardAPIVolumeFile],
    mode: i32,
    material: &Material<'_>,
) -> Result<(), PayloadError> {
    let containers: &[Container] = material.pod.spec.as_ref().map_or(&[], |spec| &spec.containers);
    for item in items {
        let (value, path) = if let Some(field) = &item.field_ref {
            (downward::field(material.pod, material.addresses, &field.field_path), &field.field_path)
        } else if let Some(resource) = &item.resource_field_ref {
            (downward::resource(containers, "", resource), &resource.resource)
        } else {
            continue;
        };
        let value = value.ok_or_else(|| PayloadError::Field(path.clone()))?;
        put(files, &item.path, value.into_bytes(), item.mode.unwrap_or(mode));
    }
    Ok(())
}

fn put(files: &mut Files, path: &str, content: Vec<u8>, mode: i32) {
    files.insert(path.to_owned(), (content, u32::try_from(mode).unwrap_or(0o644) & 0o777));
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn check(volume: Value, expect: Result<&[(&str, &str, u32)], PayloadError>) {
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let config = serde_json::from_value(json!({"data": {"k": "v", "l": "w"}})).unwrap();
        let sources = Sources { config_maps: [("cm".to_owned(), Arc::new(config))].into(), ..Sources::default() };
        let pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": []}})).unwrap();
        let local = Ipv4Addr::LOCALHOST;
        let material = Material {
            pod: &pod,
            sources: &sources,
            addresses: Addresses { pod: local, host: local },
            tokens: &[("token".to_owned(), Ok("secret".to_owned()))].into(),
        };
        let got = files(&volume, &material).map(|files| {
            let text =
                |(path, (content, mode)): (String, (Vec<u8>, u32))| (path, String::from_utf8(content).unwrap(), mode);
            files.into_iter().map(text).collect::<Vec<_>>()
        });
        let expect =
            expect.map(|list| list.iter().map(|(p, c, m)| ((*p).to_owned(), (*c).to_owned(), *m)).collect::<Vec<_>>());
        assert_eq!(got, expect);
    }

    #[test]
    fn files_are_what_the_volume_asks_for() {
        check(json!({"name": "v", "configMap": {"name": "cm"}}), Ok(&[("k", "v", 0o644), ("l", "w", 0o644)]));
        check(
            json!({"name": "v", "configMap": {"name": "cm", "defaultMode": 0o400, "items": [{"key": "k", "path": "d/f"}]}}),
            Ok(&[("d/f", "v", 0o400)]),
        );
        check(json!({"name": "v", "configMap": {"name": "no"}}), Err(PayloadError::ConfigMap("no".to_owned())));
        check(json!({"name": "v", "configMap": {"name": "no", "optional": true}}), Ok(&[]));
        check(
            json!({"name": "v", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}),
            Ok(&[("name", "p", 0o644), ("token", "secret", 0o644)]),
        );
    }
}
