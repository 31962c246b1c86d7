//! The samples of a project, in the cluster as they are in the folder: written ones are applied, removed ones are deleted.

use std::path::PathBuf;

use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Mutex;

use crate::commands::apply::{Mode, apply_all};
use crate::commands::request;
use crate::failure::Failure;
use crate::manifest::{self, Manifest};
use crate::resource::Catalog;

/// The samples of one project and one cluster.
pub(crate) struct Samples {
    /// Where they are written.
    pub(crate) folder: PathBuf,
    /// Where it is kept which of them the cluster has, also from one `windlass dev` to the next.
    pub(crate) memory: PathBuf,
    /// The namespace of those that name none.
    pub(crate) namespace: String,
    /// Files may change faster than they are applied: one at a time.
    pub(crate) turn: Mutex<()>,
}

/// An object that came from a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sample {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Sample {
    fn of(manifest: &Manifest, namespace: &str) -> Self {
        let (api_version, kind) = manifest.api_version_and_kind();
        // In another version it is the same object.
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: manifest.namespace().unwrap_or(namespace).to_owned(),
            name: manifest.name().to_owned(),
        }
    }
}

impl Samples {
    /// Makes the cluster have what the folder has, and tells what was done. If a file cannot be read or an object not be
    /// applied, nothing is deleted: what is missing may be there in a moment.
    pub(crate) async fn apply(&self, client: &Client) -> Result<Vec<String>, Failure> {
        let _turn = self.turn.lock().await;
        let manifests = self.read()?;
        let known = self.remembered();
        let now: Vec<Sample> = manifests.iter().map(|manifest| Sample::of(manifest, &self.namespace)).collect();
        let gone = missing(&known, &now);
        // Before anything is applied: what this process does not live to remember would stay for ever.
        self.remember(&[now.clone(), gone.clone()].concat())?;
        let mut told = Vec::new();
        for result in apply_all(client, &self.namespace, &manifests, Mode { force: true, dry_run: false }).await? {
            let applied = result?;
            told.push(format!("{} {}", applied.resource.label(&applied.name), applied.change));
        }
        if !gone.is_empty() {
            told.extend(delete(client, &gone).await?);
            self.remember(&now)?;
        }
        Ok(told)
    }

    fn read(&self) -> Result<Vec<Manifest>, Failure> {
        if manifest::is_without_manifests(&self.folder) {
            Ok(Vec::new())
        } else {
            manifest::read(std::slice::from_ref(&self.folder))
        }
    }

    /// A memory that is not there, or damaged, is none: then samples stay, which is the lesser harm.
    fn remembered(&self) -> Vec<Sample> {
        let text = std::fs::read_to_string(&self.memory).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn remember(&self, samples: &[Sample]) -> Result<(), Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", self.memory.display()));
        let text = serde_json::to_string_pretty(samples).map_err(|error| wrong(&error))?;
        let new = self.memory.with_extension("new");
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &self.memory)).map_err(|error| wrong(&error))
    }
}

/// Those of `known` that are not among `now`.
fn missing(known: &[Sample], now: &[Sample]) -> Vec<Sample> {
    known.iter().filter(|sample| !now.contains(sample)).cloned().collect()
}

async fn delete(client: &Client, gone: &[Sample]) -> Result<Vec<String>, Failure> {
    let catalog = Catalog::of(client).await?;
    let mut told = Vec::new();
    for sample in gone {
        let served = catalog.listed().find(|it| it.group == sample.group && it.kind == sample.kind);
        let Some(resource) = served else { continue }; // Its objects went with the kind.
        let path = resource.path(Some(&sample.namespace), Some(&sample.name));
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        match request::send(client, "DELETE", &path, &[], &body).await {
            Ok(_) => told.push(format!("{} deleted", resource.label(&sample.name))),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_in_another_version_and_in_another_file() {
        let sample = |text: &str| Sample::of(&manifest::parse(text, "a").unwrap()[0], "default");
        let known = [
            sample("{apiVersion: a.com/v1, kind: Site, metadata: {name: one}}"),
            sample("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: other}}"),
        ];
        let now = [sample("{apiVersion: a.com/v2, kind: Site, metadata: {name: one, namespace: default}}")];
        assert_eq!(missing(&known, &now), known[1..]);
        let elsewhere = [sample("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")];
        assert_eq!(missing(&known, &elsewhere), known);
    }

    #[test]
    fn what_is_remembered_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let samples = || Samples {
            folder: dir.path().join("samples"),
            memory: dir.path().join("samples.json"),
            namespace: "default".into(),
            turn: Mutex::default(),
        };
        assert_eq!(samples().remembered(), []);
        let one = Sample { group: String::new(), kind: "Pod".into(), namespace: "a".into(), name: "b".into() };
        samples().remember(std::slice::from_ref(&one)).unwrap();
        assert_eq!(samples().remembered(), [one]);
        // A folder that is not there, or empty, has no samples; a file that cannot be read is no reason to delete any.
        assert!(samples().read().unwrap().is_empty());
        std::fs::create_dir(dir.path().join("samples")).unwrap();
        assert!(samples().read().unwrap().is_empty());
        std::fs::write(dir.path().join("samples/a.yaml"), "kind: [").unwrap();
        assert!(samples().read().is_err());
    }
}
