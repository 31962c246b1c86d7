//! The resources of the program and what it made of them, as rows.

use kube::Client;
use serde_json::Value;

use super::install::{Installed, KindPath};
use crate::commands::request;
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};
use crate::view::readiness::{Readiness, judge};

/// More rows than this are not shown.
const ROWS_MAX: usize = 200;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// `site/sample`, with the namespace if it is not the default one.
    pub(crate) label: String,
    /// Whether it was made for the row above it.
    pub(crate) is_child: bool,
    pub(crate) readiness: Readiness,
}

/// Looks at all resources.
pub(crate) async fn look(client: &Client, installed: &Installed) -> Result<Vec<Row>, Failure> {
    let catalog = Catalog::of(client).await?;
    let mut made = Vec::new();
    for kind in &installed.owned {
        made.extend(objects(client, &catalog, kind).await?);
    }
    let mut rows = Vec::new();
    for kind in &installed.kinds {
        rows.extend(rows_of(&objects(client, &catalog, kind).await?, &made));
    }
    rows.truncate(ROWS_MAX);
    Ok(rows)
}

async fn objects(client: &Client, catalog: &Catalog, kind: &KindPath) -> Result<Vec<Value>, Failure> {
    let word = if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) };
    let Ok(resource) = catalog.find(&word) else { return Ok(Vec::new()) };
    let list = request::get(client, &resource.path(None, None), &[("limit", ROWS_MAX.to_string())]).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items.into_iter().map(|item| complete(item, resource)).collect())
}

/// Items of a list may leave out what the list says for all.
fn complete(mut item: Value, resource: &Resource) -> Value {
    item["kind"] = resource.kind.as_str().into();
    let group = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
    item["apiVersion"] = format!("{group}{}", resource.version).into();
    item
}

/// Each resource, and below it what is owned by it.
fn rows_of(resources: &[Value], made: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for resource in resources {
        rows.push(row(resource, false));
        let uid = &resource["metadata"]["uid"];
        let is_child = |object: &&Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
        };
        rows.extend(made.iter().filter(is_child).map(|object| row(object, true)));
    }
    rows
}

fn row(object: &Value, is_child: bool) -> Row {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = format!("{}/{}", text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
    let namespace = object["metadata"]["namespace"].as_str().filter(|namespace| *namespace != "default" && !is_child);
    let label = namespace.map_or_else(|| name.clone(), |namespace| format!("{name} in {namespace}"));
    let readiness = match object["metadata"]["deletionTimestamp"].is_null() {
        true => judge(object),
        false => Readiness::Waiting("is being deleted".to_owned()),
    };
    Row { label, is_child, readiness }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_resource_owns_is_below_it() {
        let object = |kind: &str, name: &str, namespace: &str, owner: &str| {
            json!({"kind": kind, "apiVersion": "v1", "metadata": {
            "name": name, "uid": name, "namespace": namespace, "ownerReferences": [{"uid": owner}]}})
        };
        let resources = [object("Site", "a", "default", ""), object("Site", "b", "other", "")];
        let made = [object("ConfigMap", "of-b", "other", "b"), object("ConfigMap", "of-a", "default", "a")];
        let rows = rows_of(&resources, &made);
        let labels: Vec<_> = rows.iter().map(|row| (row.label.as_str(), row.is_child)).collect();
        assert_eq!(
            labels,
            [("site/a", false), ("configmap/of-a", true), ("site/b in other", false), ("configmap/of-b", true)]
        );
    }
}
