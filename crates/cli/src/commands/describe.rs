//! `windlass describe`: one object in full, with its events.

use serde_json::{Map, Value};

use super::events::{row, sorted};
use super::{delete, request};
use crate::arguments::{DescribeOptions, Target};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::resource::{Catalog, Resource};
use crate::view::columns::lay_out;
use crate::view::output::show;

/// Runs the command.
pub(crate) async fn run(options: &DescribeOptions, target: &Target) -> Result<(), Failure> {
    let connection = connect(target).await?;
    let catalog = Catalog::of(&connection.client).await?;
    let mut texts = Vec::new();
    for selection in catalog.resolve(&options.resources)? {
        let mut names = selection.names.clone();
        if names.is_empty() {
            let path = selection.resource.path(Some(&connection.namespace), None);
            names = delete::names(&request::get(&connection.client, &path, &[]).await?);
        }
        for name in names {
            texts.push(describe(&connection, &selection.resource, &name).await?);
        }
    }
    show!("{}", texts.join("\n\n"));
    Ok(())
}

async fn describe(connection: &Connection, resource: &Resource, name: &str) -> Result<String, Failure> {
    let path = resource.path(Some(&connection.namespace), Some(name));
    let object = request::get(&connection.client, &path, &[]).await?;
    let mut text = String::new();
    write_head(&mut text, &object);
    for (key, value) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata"].contains(&key.as_str()) {
            write_member(&mut text, key, value, 0);
        }
    }
    text.push_str(&events(connection, &object).await?);
    Ok(text)
}

fn write_head(text: &mut String, object: &Value) {
    let metadata = &object["metadata"];
    let mut head = Map::new();
    for key in [
        "name",
        "namespace",
        "labels",
        "annotations",
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "finalizers",
    ] {
        if let Some(value) = metadata.get(key) {
            head.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["name", "namespace"] {
        if let Some(value) = head.remove(key) {
            write_member(text, key, &value, 0);
        }
    }
    write_member(text, "kind", &object["kind"], 0);
    write_member(text, "apiVersion", &object["apiVersion"], 0);
    for (key, value) in head {
        write_member(text, &key, &value, 0);
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        let by =
            format!("{}/{}", owner["kind"].as_str().unwrap_or_default(), owner["name"].as_str().unwrap_or_default());
        write_member(text, "controlledBy", &Value::String(by), 0);
    }
}

/// `readyReplicas` becomes `Ready Replicas`.
fn title(key: &str) -> String {
    let mut title = String::new();
    for (index, letter) in key.chars().enumerate() {
        if index == 0 {
            title.extend(letter.to_uppercase());
        } else {
            if letter.is_uppercase() {
                title.push(' ');
            }
            title.push(letter);
        }
    }
    title
}

fn write_member(text: &mut String, key: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    // Keys that people chose, such as labels, stay as they are.
    let key = if key.contains(['/', '.', '-']) { key.to_owned() } else { title(key) };
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push_str(&format!("{indent}{key}:\n"));
            members.iter().for_each(|(key, value)| write_member(text, key, value, depth + 1));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            text.push_str(&format!("{indent}{key}:\n"));
            for item in items {
                text.push_str(&format!("{indent}  -\n"));
                item.as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(key, value)| write_member(text, key, value, depth + 2));
            }
        }
        Value::Array(items) => {
            let line: Vec<String> = items.iter().map(scalar).collect();
            text.push_str(&format!("{indent}{key}: {}\n", line.join(", ")));
        }
        scalar_value => text.push_str(&format!("{indent}{key}: {}\n", scalar(scalar_value))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim_end().to_owned(),
        Value::Null => "<none>".to_owned(),
        Value::Object(_) => "<empty>".to_owned(),
        other => other.to_string(),
    }
}

async fn events(connection: &Connection, object: &Value) -> Result<String, Failure> {
    let metadata = &object["metadata"];
    let path = match metadata["namespace"].as_str() {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/events"),
        None => "/api/v1/events".to_owned(),
    };
    let selector = format!("involvedObject.uid={}", metadata["uid"].as_str().unwrap_or_default());
    let list = request::get(&connection.client, &path, &[("fieldSelector", selector)]).await?;
    let events = sorted(list["items"].as_array().cloned().unwrap_or_default());
    if events.is_empty() {
        return Ok("Events: <none>\n".to_owned());
    }
    let now = jiff::Timestamp::now();
    let rows: Vec<Vec<String>> = events
        .iter()
        .map(|event| row(event, now))
        .map(|cells| vec![String::new(), cells[0].clone(), cells[1].clone(), cells[2].clone(), cells[4].clone()])
        .collect();
    Ok(format!("Events:\n{}", lay_out(&rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_written_with_titles_and_indents() {
        let mut text = String::new();
        write_member(
            &mut text,
            "spec",
            &json!({"readyReplicas": 3, "nodes": ["a", "b"], "ports": [{"port": 1}], "labels": {"app.kubernetes.io/name": "x"}}),
            0,
        );
        assert_eq!(
            text,
            "Spec:\n  Labels:\n    app.kubernetes.io/name: x\n  Nodes: a, b\n  Ports:\n    -\n      Port: 1\n  Ready Replicas: 3\n"
        );
    }
}
