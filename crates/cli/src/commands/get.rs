//! `windlass get`: objects as tables, YAML, JSON or names.

use futures::StreamExt;
use serde_json::{Value, json};

use super::request;
use crate::arguments::{GetOptions, Output, Target};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::resource::{Catalog, Resource, Selection};
use crate::view::columns::lay_out;
use crate::view::output::{say, show};

/// Runs the command.
pub(crate) async fn run(options: &GetOptions, target: &Target) -> Result<(), Failure> {
    let connection = connect(target).await?;
    let catalog = Catalog::of(&connection.client).await?;
    let selections = catalog.resolve(&options.resources)?;
    if options.watch {
        let [selection] = selections.as_slice() else {
            return Err(Failure::new("--watch follows one resource at a time"));
        };
        return follow(&connection, selection, options).await;
    }
    match options.output {
        None | Some(Output::Wide) => tables(&connection, &selections, options).await,
        Some(output) => objects(&connection, &selections, options, output).await,
    }
}

async fn tables(connection: &Connection, selections: &[Selection], options: &GetOptions) -> Result<(), Failure> {
    let several = selections.len() > 1;
    let mut texts = Vec::new();
    for selection in selections {
        for path in paths(connection, selection, options) {
            let table = request::get_as(&connection.client, &path, &query(options, selection), request::TABLE).await?;
            if table["rows"].as_array().is_some_and(|rows| !rows.is_empty()) {
                let prefix = several.then_some(&selection.resource);
                texts.push(lay_out(&rows(&table, options, prefix, true)));
            }
        }
    }
    if texts.is_empty() {
        let place =
            if options.all_namespaces { String::new() } else { format!(" in {} namespace", connection.namespace) };
        eprintln!("No resources found{place}.");
    }
    let separator = if several { "\n" } else { "" };
    show!("{}", texts.join(separator));
    Ok(())
}

async fn objects(
    connection: &Connection,
    selections: &[Selection],
    options: &GetOptions,
    output: Output,
) -> Result<(), Failure> {
    let mut found: Vec<(Resource, Value)> = Vec::new();
    for selection in selections {
        for path in paths(connection, selection, options) {
            let answer = request::get(&connection.client, &path, &query(options, selection)).await?;
            found.extend(items(&answer).into_iter().map(|item| (selection.resource.clone(), item)));
        }
    }
    let single = selections.iter().map(|selection| selection.names.len()).sum::<usize>() == 1;
    match output {
        Output::Name => {
            for (resource, object) in &found {
                say!("{}", resource.label(object["metadata"]["name"].as_str().unwrap_or_default()));
            }
        }
        Output::Json => say!("{:#}", document(found, single)),
        Output::Yaml | Output::Wide => show!("{}", yaml(&document(found, single))?),
    }
    Ok(())
}

/// One object as it is, several as a list.
fn document(mut found: Vec<(Resource, Value)>, single: bool) -> Value {
    if single && found.len() == 1 {
        return found.remove(0).1;
    }
    let items: Vec<Value> = found.into_iter().map(|(_, object)| object).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {}})
}

/// An object as YAML.
pub(crate) fn yaml(value: &Value) -> Result<String, Failure> {
    serde_saphyr::to_string(value).map_err(|error| Failure::new(format!("cannot print YAML: {error}")))
}

async fn follow(connection: &Connection, selection: &Selection, options: &GetOptions) -> Result<(), Failure> {
    let namespace = (!options.all_namespaces).then_some(connection.namespace.as_str());
    let path = selection.resource.path(namespace, None);
    let mut query = query(options, selection);
    if let [name] = selection.names.as_slice() {
        query.push(("fieldSelector", format!("metadata.name={name}")));
    }
    let mut events = std::pin::pin!(request::watch(&connection.client, &path, &query, request::TABLE).await?);
    let mut header = true;
    while let Some(event) = events.next().await {
        let event = event?;
        if event["type"] == "ERROR" {
            return Err(Failure::new(event["object"]["message"].as_str().unwrap_or("the watch ended").to_owned()));
        }
        if event["type"] != "BOOKMARK" {
            show!("{}", lay_out(&rows(&event["object"], options, None, header)));
            header = false;
        }
    }
    Ok(())
}

fn paths(connection: &Connection, selection: &Selection, options: &GetOptions) -> Vec<String> {
    let namespace = (!options.all_namespaces).then_some(connection.namespace.as_str());
    if selection.names.is_empty() {
        return vec![selection.resource.path(namespace, None)];
    }
    selection.names.iter().map(|name| selection.resource.path(namespace, Some(name))).collect()
}

fn query(options: &GetOptions, selection: &Selection) -> Vec<(&'static str, String)> {
    let mut query = Vec::new();
    if selection.names.is_empty() {
        query.extend(options.selector.clone().map(|selector| ("labelSelector", selector)));
        query.extend(options.field_selector.clone().map(|selector| ("fieldSelector", selector)));
    }
    query
}

fn items(answer: &Value) -> Vec<Value> {
    let Some(items) = answer["items"].as_array() else { return vec![answer.clone()] };
    let kind = answer["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
    let complete = |item: &Value| {
        let mut item = item.clone();
        if item["kind"].is_null() {
            item["apiVersion"] = answer["apiVersion"].clone();
            item["kind"] = json!(kind);
        }
        item
    };
    items.iter().map(complete).collect()
}

/// The rows of a table that the options ask for, with the namespace and the resource in front where wanted.
fn rows(table: &Value, options: &GetOptions, prefix: Option<&Resource>, header: bool) -> Vec<Vec<String>> {
    let wide = options.output == Some(Output::Wide);
    let definitions = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let shown: Vec<usize> = (0..definitions.len())
        .filter(|&index| wide || definitions[index]["priority"].as_i64().unwrap_or(0) == 0)
        .collect();
    let mut rows = Vec::new();
    if header {
        let mut titles: Vec<String> =
            shown.iter().map(|&index| definitions[index]["name"].as_str().unwrap_or_default().to_uppercase()).collect();
        if options.all_namespaces {
            titles.insert(0, "NAMESPACE".to_owned());
        }
        rows.push(titles);
    }
    for row in table["rows"].as_array().into_iter().flatten() {
        let mut cells: Vec<String> = shown.iter().map(|&index| cell(&row["cells"][index])).collect();
        if let (Some(resource), Some(name)) = (prefix, cells.first_mut()) {
            *name = resource.label(name);
        }
        if options.all_namespaces {
            cells.insert(0, row["object"]["metadata"]["namespace"].as_str().unwrap_or_default().to_owned());
        }
        rows.push(cells);
    }
    rows
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
