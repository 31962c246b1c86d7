//! Gathering of facts: thin, and going on where something cannot be read.

use std::collections::HashSet;

use kube::Client;
use serde_json::Value;

use super::facts::{Facts, Node, text};
use super::{graph, replicas};
use crate::commands::events::sorted;
use crate::commands::request;
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};

/// How many events of a namespace are read.
const EVENTS_MAX: usize = 2000;

/// All that can be found out of one object. `journal` is the address of an operator to ask directly.
///
/// # Errors
/// When the object itself cannot be read.
pub(crate) async fn gather(
    client: &Client,
    catalog: &Catalog,
    (resource, namespace, name): (&Resource, &str, &str),
    journal: Option<&str>,
) -> Result<Facts, Failure> {
    let object = request::get(client, &resource.path(Some(namespace), Some(name)), &[]).await?;
    let owners = graph::owners(client, catalog, &object).await;
    let (operators, (mut tree, mut gaps)) =
        tokio::join!(replicas::ask(client, &object, &owners, journal), graph::below(client, catalog, object.clone()));
    add_claims(client, &mut tree).await;
    let mut events = match events(client, &object).await {
        Ok(events) => events,
        Err(failure) => {
            gaps.push(format!("events: {failure}"));
            Vec::new()
        }
    };
    let concerned: HashSet<String> = (tree.all().into_iter().chain(&owners).chain(&operators.pods))
        .map(|object| text(&object["metadata"]["uid"]).to_owned())
        .collect();
    events.retain(|event| concerned.contains(text(&event["involvedObject"]["uid"])));
    let has_claims = tree.all().iter().any(|object| text(&object["kind"]) == "PersistentVolumeClaim");
    let classes = if has_claims { classes(client).await } else { None };
    Ok(Facts { tree, owners, events: sorted(events), classes, operators, gaps, now: jiff::Timestamp::now() })
}

async fn events(client: &Client, object: &Value) -> Result<Vec<Value>, Failure> {
    let metadata = &object["metadata"];
    let (path, mut query) = match (text(&object["kind"]), metadata["namespace"].as_str()) {
        ("Namespace", _) => (format!("/api/v1/namespaces/{}/events", text(&metadata["name"])), Vec::new()),
        (_, Some(namespace)) => (format!("/api/v1/namespaces/{namespace}/events"), Vec::new()),
        (_, None) => {
            let selector = format!("involvedObject.uid={}", text(&metadata["uid"]));
            ("/api/v1/events".to_owned(), vec![("fieldSelector", selector)])
        }
    };
    query.push(("limit", EVENTS_MAX.to_string()));
    let list = request::get(client, &path, &query).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The claims that Pods name, below the Pods that name them.
async fn add_claims(client: &Client, node: &mut Node) {
    for child in &mut node.children {
        Box::pin(add_claims(client, child)).await;
    }
    if text(&node.object["kind"]) != "Pod" {
        return;
    }
    let namespace = text(&node.object["metadata"]["namespace"]).to_owned();
    let volumes = node.object["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    for volume in volumes {
        let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() else { continue };
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
        if let Ok(Some(claim)) = request::find(client, &path).await {
            node.children.push(Node { object: claim, children: Vec::new() });
        }
    }
}

async fn classes(client: &Client) -> Option<Vec<String>> {
    let list = request::get(client, "/apis/storage.k8s.io/v1/storageclasses", &[]).await.ok()?;
    let names = list["items"].as_array()?.iter().map(|class| text(&class["metadata"]["name"]).to_owned());
    Some(names.collect())
}
