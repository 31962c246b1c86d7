//! What a real kube-apiserver says of CEL expressions, written into the fixtures of windlass-apiserver.
//!
//! A fixture has the expressions and what became of them. Recording sends the expressions of a fixture to the server and
//! writes the fixture anew, so a new expression is added by hand with anything beside it.

mod costs;
mod policies;
mod rules;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::control_plane::ControlPlane;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a definition may take to be served, and a status to be written.
const SEEN_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// Records every fixture in the folder anew.
pub(crate) async fn record(plane: &ControlPlane, folder: &Path) -> Result<()> {
    for (name, recording) in
        [("rules.json", Recording::Rules), ("policies.json", Recording::Policies), ("estimates.json", Recording::Costs)]
    {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut fixture: Value = serde_json::from_str(&text).with_context(|| format!("{name} is no JSON"))?;
        match recording {
            Recording::Rules => rules::record(plane, &mut fixture).await,
            Recording::Policies => policies::record(plane, &mut fixture).await,
            Recording::Costs => costs::record(plane, &mut fixture).await,
        }
        .with_context(|| format!("cannot record {name}"))?;
        fs::write(&path, written(&fixture))?;
        println!("recorded {}", path.display());
    }
    Ok(())
}

enum Recording {
    Rules,
    Policies,
    Costs,
}

/// A fixture as text, with a line for every member and for every row of a list.
fn written(fixture: &Value) -> String {
    let members = fixture.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Array(rows) => {
            let rows = rows.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
            format!("{}: [\n{rows}\n]", json!(name))
        }
        other => format!("{}: {other}", json!(name)),
    });
    format!("{{\n{}\n}}\n", members.collect::<Vec<_>>().join(",\n"))
}

/// Creates an object; `dry` leaves nothing behind.
async fn create(plane: &ControlPlane, path: &str, object: Value, dry: bool) -> Answer {
    let path = if dry { format!("{path}?dryRun=All") } else { path.to_owned() };
    Call::new("create", "POST", path, Some(object)).send(&plane.client).await
}

/// The causes of an error: the field and the message of each.
fn causes(answer: &Answer) -> Vec<(String, String)> {
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

/// The number of an entry in a path such as `spec.validations[3].expression`, after `before`.
fn number_after(path: &str, before: &str) -> Option<usize> {
    path.split_once(before)?.1.split_once(']')?.0.parse().ok()
}

/// What is in a message after the value that it is about.
fn detail(message: &str) -> &str {
    let starts =
        ["compilation failed: ", "must evaluate to ", "program instantiation failed: ", "estimated rule cost "];
    let start = starts.iter().filter_map(|start| message.find(start)).min();
    &message[start.unwrap_or(0)..]
}

/// A definition of a kind with this schema for its `spec`.
fn definition(name: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.cel.example.com")},
        "spec": {"group": "cel.example.com", "scope": "Cluster",
            "names": {"plural": format!("{name}s"), "singular": name, "kind": name.to_uppercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// Waits until a request has this answer.
async fn until(plane: &ControlPlane, path: &str, is_there: impl Fn(&Answer) -> bool) -> Result<Answer> {
    let deadline = Instant::now() + SEEN_MAX;
    loop {
        let answer = Call::new("get", "GET", path.to_owned(), None).send(&plane.client).await;
        if is_there(&answer) {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("{path} stays as it is: {}", answer.body);
        }
        tokio::time::sleep(POLL).await;
    }
}
