//! The resources of the program and what it made of them, as rows.

use kube::Client;
use serde_json::Value;

use super::install::{Installed, KindPath};
use crate::commands::request;
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};
use crate::view::readiness::{Readiness, judge};
use crate::why::{Depth, Finding, diagnose, gather};

/// More rows than this are not shown.
const ROWS_MAX: usize = 200;
/// Of how many resources that are not ready the cause is looked for.
const CAUSES_MAX: usize = 3;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// `site/sample`, with the namespace if it is not the default one.
    pub(crate) label: String,
    pub(crate) rank: Rank,
    pub(crate) readiness: Readiness,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// A resource.
    Resource,
    /// Something that was made for the resource above it.
    Child,
    /// What keeps the resource above it from being ready.
    Cause,
}

impl Rank {
    /// What stands before the label.
    pub(crate) fn indent(self) -> &'static str {
        if self == Self::Resource { "" } else { "  " }
    }
}

/// Looks at all resources.
pub(crate) async fn look(client: &Client, installed: &Installed) -> Result<Vec<Row>, Failure> {
    let catalog = Catalog::of(client).await?;
    let mut made = Vec::new();
    for kind in &installed.owned {
        made.extend(objects(client, &catalog, kind).await?);
    }
    let (mut rows, mut causes_left) = (Vec::new(), CAUSES_MAX);
    for kind in &installed.kinds {
        for resource in objects(client, &catalog, kind).await? {
            rows.extend(rows_of(&resource, &made));
            if causes_left > 0 && !matches!(judge(&resource), Readiness::Ready(_)) {
                causes_left -= 1;
                rows.extend(cause(client, &catalog, kind, &resource).await);
            }
        }
    }
    rows.truncate(ROWS_MAX);
    Ok(rows)
}

/// What `windlass why` would name first, if it knows more than the resource itself says.
async fn cause(client: &Client, catalog: &Catalog, kind: &KindPath, resource: &Value) -> Option<Row> {
    let metadata = &resource["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str()?);
    let place = (catalog.find(&kind.word()).ok()?, namespace, name);
    let facts = gather(client, catalog, place, None).await.ok()?;
    diagnose(&facts).into_iter().find(|it| matches!(it.depth, Depth::Cause | Depth::Refusal)).map(|it| row_of(&it))
}

fn row_of(finding: &Finding) -> Row {
    let (kind, name) = finding.object.split_once(' ').unwrap_or(("", &finding.object));
    let others = if finding.others > 0 { format!(" (and {} more)", finding.others) } else { String::new() };
    let label = format!("{}/{name}{others}", kind.to_lowercase());
    Row { label, rank: Rank::Cause, readiness: Readiness::Waiting(finding.says.clone()) }
}

async fn objects(client: &Client, catalog: &Catalog, kind: &KindPath) -> Result<Vec<Value>, Failure> {
    let Ok(resource) = catalog.find(&kind.word()) else { return Ok(Vec::new()) };
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

/// A resource, and below it what is owned by it.
fn rows_of(resource: &Value, made: &[Value]) -> Vec<Row> {
    let uid = &resource["metadata"]["uid"];
    let is_child = |object: &&Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
    };
    let children = made.iter().filter(is_child).map(|object| row(object, Rank::Child));
    std::iter::once(row(resource, Rank::Resource)).chain(children).collect()
}

fn row(object: &Value, rank: Rank) -> Row {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = format!("{}/{}", text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
    let namespace =
        object["metadata"]["namespace"].as_str().filter(|namespace| *namespace != "default" && rank == Rank::Resource);
    let label = namespace.map_or_else(|| name.clone(), |namespace| format!("{name} in {namespace}"));
    let readiness = match object["metadata"]["deletionTimestamp"].is_null() {
        true => judge(object),
        false => Readiness::Waiting("is being deleted".to_owned()),
    };
    Row { label, rank, readiness }
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
        let rows: Vec<Row> = resources.iter().flat_map(|resource| rows_of(resource, &made)).collect();
        let labels: Vec<_> = rows.iter().map(|row| format!("{}{}", row.rank.indent(), row.label)).collect();
        assert_eq!(labels, ["site/a", "  configmap/of-a", "site/b in other", "  configmap/of-b"]);
    }

    #[test]
    fn a_cause_is_named_with_the_object_that_it_is_about() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "a-1"}});
        let mut finding = Finding::new(Depth::Cause, &pod, "the image cannot be had");
        finding.others = 2;
        let row = row_of(&finding);
        assert_eq!(row.label, "pod/a-1 (and 2 more)");
        assert_eq!(row.readiness, Readiness::Waiting("the image cannot be had".into()));
    }
}
