//! What is above and below an object, by owner references.

use std::collections::HashMap;

use futures::StreamExt;
use kube::Client;
use serde_json::Value;

use super::facts::{Node, text};
use crate::commands::request;
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};

/// How many objects above are looked at.
const OWNERS_MAX: usize = 8;
/// How many objects of one kind are looked at.
const OBJECTS_PER_KIND_MAX: usize = 1000;
/// How many objects below are read in full.
const OBJECTS_READ_MAX: usize = 300;
/// How many requests are made at once.
const REQUESTS_MAX: usize = 8;
/// Only metadata: who owns what is all that is asked.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Kinds whose contents say nothing of being ready, or are nobody's business.
const UNREAD: [&str; 10] = [
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Endpoints",
    "EndpointSlice",
    "ControllerRevision",
    "Lease",
    "Event",
];

/// Objects by the uid of their owner.
type Below = HashMap<String, Vec<Value>>;

/// What is above `object`, the nearest first.
pub(super) async fn owners(client: &Client, catalog: &Catalog, object: &Value) -> Vec<Value> {
    let mut owners: Vec<Value> = Vec::new();
    let mut current = object.clone();
    while owners.len() < OWNERS_MAX {
        let references = current["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let reference = references.iter().find(|owner| owner["controller"] == true).or(references.first());
        let Some(reference) = reference else { break };
        let Some(resource) = catalog.of_kind(text(&reference["apiVersion"]), text(&reference["kind"])) else { break };
        let path = resource.path(current["metadata"]["namespace"].as_str(), Some(text(&reference["name"])));
        let Ok(Some(owner)) = request::find(client, &path).await else { break };
        if owner["metadata"]["uid"] != reference["uid"] {
            break;
        }
        owners.push(owner.clone());
        current = owner;
    }
    owners
}

/// What is below `object`, and what could not be looked at.
pub(super) async fn below(client: &Client, catalog: &Catalog, object: Value) -> (Node, Vec<String>) {
    let kind = text(&object["kind"]).to_owned();
    if matches!(kind.as_str(), "Pod" | "PersistentVolumeClaim" | "Node") {
        return (Node { object, children: Vec::new() }, Vec::new());
    }
    let is_ending = !object["metadata"]["deletionTimestamp"].is_null();
    if kind == "Namespace" && !is_ending {
        return (Node { object, children: Vec::new() }, Vec::new());
    }
    let namespace = if kind == "Namespace" { Some(text(&object["metadata"]["name"]).to_owned()) } else { None };
    let namespace = namespace.or_else(|| object["metadata"]["namespace"].as_str().map(str::to_owned));
    let (all, gaps) = list_all(client, catalog, namespace.as_deref()).await;
    if kind == "Namespace" {
        // All that is in it is below it.
        let children = all.into_iter().map(|object| Node { object, children: Vec::new() }).collect();
        return (Node { object, children }, gaps);
    }
    let mut below = Below::new();
    for one in all {
        for owner in one["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            below.entry(text(&owner["uid"]).to_owned()).or_default().push(one.clone());
        }
    }
    let mut tree = grown(object, &mut below, 0);
    read(client, catalog, &mut tree).await;
    (tree, gaps)
}

/// The metadata of all objects where those below can be.
async fn list_all(client: &Client, catalog: &Catalog, namespace: Option<&str>) -> (Vec<Value>, Vec<String>) {
    let kinds: Vec<&Resource> =
        catalog.listed().filter(|resource| resource.namespaced || namespace.is_none()).collect();
    let lists = futures::stream::iter(kinds).map(|resource| async move {
        let query = [("limit", OBJECTS_PER_KIND_MAX.to_string())];
        (resource, request::get_as(client, &resource.path(namespace, None), &query, METADATA).await)
    });
    let (mut all, mut gaps) = (Vec::new(), Vec::new());
    let mut lists = std::pin::pin!(lists.buffer_unordered(REQUESTS_MAX));
    while let Some((resource, list)) = lists.next().await {
        match list {
            Ok(list) => {
                all.extend(list["items"].as_array().cloned().unwrap_or_default().into_iter().map(|mut object| {
                    object["apiVersion"] = resource.api_version().into();
                    object["kind"] = resource.kind.clone().into();
                    object
                }))
            }
            Err(error) => gaps.push(format!("{}: {}", resource.plural, Failure::from(error))),
        }
    }
    all.sort_by_key(|object| format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"])));
    gaps.sort();
    (all, gaps)
}

fn grown(object: Value, below: &mut Below, depth: usize) -> Node {
    // References in a circle end here: each object is taken out once.
    let children = below.remove(text(&object["metadata"]["uid"])).unwrap_or_default();
    let children = children.into_iter().filter(|_| depth < OWNERS_MAX);
    Node { children: children.map(|child| grown(child, below, depth + 1)).collect(), object }
}

/// Reads in full what has a status.
async fn read(client: &Client, catalog: &Catalog, tree: &mut Node) {
    let mut wanted = Vec::new();
    for child in &tree.children {
        wanted.extend(child.all().into_iter().filter(|object| !UNREAD.contains(&text(&object["kind"]))).cloned());
    }
    wanted.truncate(OBJECTS_READ_MAX);
    let reads = futures::stream::iter(wanted).map(|object| async move {
        let resource = catalog.of_kind(text(&object["apiVersion"]), text(&object["kind"]))?;
        let metadata = &object["metadata"];
        let path = resource.path(metadata["namespace"].as_str(), Some(text(&metadata["name"])));
        request::find(client, &path).await.ok().flatten()
    });
    let read: Vec<Value> = reads.buffer_unordered(REQUESTS_MAX).filter_map(std::future::ready).collect().await;
    let by_uid: HashMap<String, Value> =
        read.into_iter().map(|object| (text(&object["metadata"]["uid"]).to_owned(), object)).collect();
    for child in &mut tree.children {
        fill(child, &by_uid);
    }
}

fn fill(node: &mut Node, by_uid: &HashMap<String, Value>) {
    if let Some(object) = by_uid.get(text(&node.object["metadata"]["uid"])) {
        node.object = object.clone();
    }
    node.children.iter_mut().for_each(|child| fill(child, by_uid));
}
