//! `windlass apply`: objects as files say, by server-side apply.

use std::collections::HashSet;
use std::time::Duration;

use kube::Client;
use serde_json::Value;

use super::request;
use crate::arguments::{ApplyOptions, Target};
use crate::connection::connect;
use crate::failure::Failure;
use crate::manifest::{self, Manifest};
use crate::resource::{Catalog, Resource};
use crate::view::output::say;

/// The owner of the fields that this command writes.
const FIELD_MANAGER: &str = "windlass";
/// How long a kind that the same files define may take to be served.
const NEW_KIND_WAIT: Duration = Duration::from_secs(30);
const NEW_KIND_POLL: Duration = Duration::from_millis(100);

/// How objects are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
}

/// An object that was written.
pub(crate) struct Applied {
    pub(crate) resource: Resource,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) change: &'static str,
}

/// Runs the command.
pub(crate) async fn run(options: &ApplyOptions, target: &Target) -> Result<(), Failure> {
    let manifests = manifest::read(&options.files)?;
    if manifests.is_empty() {
        return Err(Failure::new("no objects in the files"));
    }
    let connection = connect(target).await?;
    let mode = Mode { force: options.force_conflicts, dry_run: options.dry_run };
    let mut failures = 0;
    for result in apply_all(&connection.client, &connection.namespace, &manifests, mode).await? {
        match result {
            Ok(applied) => {
                let note = if mode.dry_run { " (server dry run)" } else { "" };
                say!("{} {}{note}", applied.resource.label(&applied.name), applied.change);
            }
            Err(failure) => {
                failure.report();
                failures += 1;
            }
        }
    }
    if failures > 0 {
        return Err(Failure::new(format!("{failures} of {} objects were not applied", manifests.len())));
    }
    Ok(())
}

/// Applies objects in order; kinds and namespaces first, since the others need them.
pub(crate) async fn apply_all(
    client: &Client,
    namespace: &str,
    manifests: &[Manifest],
    mode: Mode,
) -> Result<Vec<Result<Applied, Failure>>, Failure> {
    let mut catalog = Catalog::of(client).await?;
    let mut results = Vec::new();
    for manifest in ordered(manifests) {
        let (api_version, kind) = manifest.api_version_and_kind();
        if catalog.of_kind(api_version, kind).is_none() {
            catalog = wait_for_kind(client, manifest, manifests).await?;
        }
        let result = match catalog.of_kind(api_version, kind) {
            Some(resource) => apply_one(client, resource, namespace, manifest, mode).await,
            None => Err(unknown_kind(manifest)),
        };
        results.push(result.map_err(|failure| failure.context(&manifest.origin)));
    }
    Ok(results)
}

fn ordered(manifests: &[Manifest]) -> Vec<&Manifest> {
    let rank = |manifest: &&Manifest| match manifest.api_version_and_kind().1 {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    };
    let mut ordered: Vec<&Manifest> = manifests.iter().collect();
    ordered.sort_by_key(rank);
    ordered
}

/// A kind that comes with the same files is served a moment later; any other is unknown at once.
async fn wait_for_kind(client: &Client, wanted: &Manifest, manifests: &[Manifest]) -> Result<Catalog, Failure> {
    let (api_version, kind) = wanted.api_version_and_kind();
    let defined: HashSet<&str> =
        manifests.iter().filter_map(|manifest| manifest.object["spec"]["names"]["kind"].as_str()).collect();
    let deadline = tokio::time::Instant::now() + NEW_KIND_WAIT;
    loop {
        let catalog = Catalog::of(client).await?;
        let served = catalog.of_kind(api_version, kind).is_some();
        if served || !defined.contains(kind) || tokio::time::Instant::now() > deadline {
            return Ok(catalog);
        }
        tokio::time::sleep(NEW_KIND_POLL).await;
    }
}

fn unknown_kind(manifest: &Manifest) -> Failure {
    let (api_version, kind) = manifest.api_version_and_kind();
    Failure::new(format!("the cluster has no kind {kind} in {api_version}"))
        .advice("check apiVersion and kind; `windlass get crd` lists what operators added")
}

async fn apply_one(
    client: &Client,
    resource: &Resource,
    namespace: &str,
    manifest: &Manifest,
    mode: Mode,
) -> Result<Applied, Failure> {
    let namespace = resource.namespaced.then(|| manifest.namespace().unwrap_or(namespace).to_owned());
    let path = resource.path(namespace.as_deref(), Some(manifest.name()));
    let before = request::find(client, &path).await?;
    let mut query = vec![("fieldManager", FIELD_MANAGER.to_owned()), ("fieldValidation", "Strict".to_owned())];
    if mode.force {
        query.push(("force", "true".to_owned()));
    }
    if mode.dry_run {
        query.push(("dryRun", "All".to_owned()));
    }
    let after = request::send(client, "PATCH", &path, &query, &manifest.object).await.map_err(explain)?;
    let change = change(before.as_ref(), &after);
    Ok(Applied { resource: resource.clone(), namespace, name: manifest.name().to_owned(), change })
}

fn change(before: Option<&Value>, after: &Value) -> &'static str {
    match before {
        None => "created",
        Some(before) if before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"] => "unchanged",
        Some(_) => "configured",
    }
}

fn explain(error: kube::Error) -> Failure {
    let conflict =
        matches!(&error, kube::Error::Api(status) if status.code == 409 && status.message.contains("conflict"));
    let failure = Failure::from(error);
    if conflict {
        failure.advice("another manager owns these fields; --force-conflicts takes them over")
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_and_namespaces_go_first() {
        let manifest = |kind: &str| Manifest { object: json!({"kind": kind}), origin: String::new() };
        let manifests =
            [manifest("Memcached"), manifest("CustomResourceDefinition"), manifest("Pod"), manifest("Namespace")];
        let kinds: Vec<&str> = ordered(&manifests).iter().map(|m| m.api_version_and_kind().1).collect();
        assert_eq!(kinds, ["Namespace", "CustomResourceDefinition", "Memcached", "Pod"]);
    }

    #[test]
    fn a_change_is_told_from_the_resource_version() {
        let at = |version: &str| json!({"metadata": {"resourceVersion": version}});
        assert_eq!(change(None, &at("1")), "created");
        assert_eq!(change(Some(&at("1")), &at("1")), "unchanged");
        assert_eq!(change(Some(&at("1")), &at("2")), "configured");
    }
}
