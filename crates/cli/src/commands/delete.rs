//! `windlass delete`: objects by file, name, label or all of a resource.

use serde_json::{Value, json};

use super::request;
use super::wait::{Goal, Waiting, wait_for};
use crate::arguments::{Cascade, DeleteOptions, Target};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::manifest;
use crate::resource::{Catalog, Resource};
use crate::view::output::say;

struct Doomed {
    resource: Resource,
    namespace: Option<String>,
    name: String,
}

/// Runs the command.
pub(crate) async fn run(options: &DeleteOptions, target: &Target) -> Result<(), Failure> {
    if options.files.is_empty() && options.resources.is_empty() {
        return Err(Failure::new("say what to delete: `windlass delete memcached/x` or `windlass delete -f FILE`"));
    }
    let connection = connect(target).await?;
    let doomed = find(options, &connection).await?;
    let mut deleted = Vec::new();
    let mut missing = 0;
    for object in doomed {
        match delete(&connection, &object, options.cascade).await {
            Ok(()) => {
                say!("{} deleted", object.resource.label(&object.name));
                deleted.push(object);
            }
            Err(kube::Error::Api(status)) if status.code == 404 && options.ignore_not_found => {}
            Err(error) => {
                Failure::from(error).report();
                missing += 1;
            }
        }
    }
    if !options.no_wait {
        for object in &deleted {
            let path = object.resource.path(object.namespace.as_deref(), None);
            let label = object.resource.label(&object.name);
            let waiting = Waiting { client: &connection.client, path: &path, name: &object.name, label: &label };
            wait_for(&waiting, &Goal::Gone, options.timeout).await?;
        }
    }
    if missing > 0 { Err(Failure::new(format!("{missing} objects were not deleted"))) } else { Ok(()) }
}

async fn find(options: &DeleteOptions, connection: &Connection) -> Result<Vec<Doomed>, Failure> {
    let catalog = Catalog::of(&connection.client).await?;
    let mut found = Vec::new();
    for manifest in manifest::read(&options.files)? {
        let (api_version, kind) = manifest.api_version_and_kind();
        let Some(resource) = catalog.of_kind(api_version, kind) else {
            if options.ignore_not_found {
                continue;
            }
            return Err(Failure::new(format!("the cluster has no kind {kind} in {api_version}")));
        };
        let namespace = manifest.namespace().unwrap_or(&connection.namespace).to_owned();
        found.push(doomed(resource, &namespace, manifest.name()));
    }
    for selection in catalog.resolve(&options.resources)? {
        let resource = &selection.resource;
        if selection.names.is_empty() {
            for name in listed(options, connection, resource).await? {
                found.push(doomed(resource, &connection.namespace, &name));
            }
        }
        found.extend(selection.names.iter().map(|name| doomed(resource, &connection.namespace, name)));
    }
    Ok(found)
}

fn doomed(resource: &Resource, namespace: &str, name: &str) -> Doomed {
    let namespace = resource.namespaced.then(|| namespace.to_owned());
    Doomed { resource: resource.clone(), namespace, name: name.to_owned() }
}

/// Names by label or all; a resource alone is refused, since it might be a slip.
async fn listed(options: &DeleteOptions, connection: &Connection, resource: &Resource) -> Result<Vec<String>, Failure> {
    if !options.all && options.selector.is_none() {
        return Err(Failure::new(format!("name the {} to delete, or say --all or -l LABEL=VALUE", resource.plural)));
    }
    let path = resource.path(Some(&connection.namespace), None);
    let query: Vec<(&str, String)> =
        options.selector.iter().map(|selector| ("labelSelector", selector.clone())).collect();
    Ok(names(&request::get(&connection.client, &path, &query).await?))
}

/// The names in a list.
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

async fn delete(connection: &Connection, object: &Doomed, cascade: Cascade) -> Result<(), kube::Error> {
    let policy = match cascade {
        Cascade::Background => "Background",
        Cascade::Foreground => "Foreground",
        Cascade::Orphan => "Orphan",
    };
    let path = object.resource.path(object.namespace.as_deref(), Some(&object.name));
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
    request::send(&connection.client, "DELETE", &path, &[], &body).await.map(|_| ())
}
