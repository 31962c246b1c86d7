//! `windlass wait`: until objects are as said.

use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use serde_json::Value;

use super::delete::names;
use super::request;
use crate::arguments::{Target, WaitOptions};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::resource::{Catalog, Selection};
use crate::view::output::say;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A condition has a status.
    Condition { kind: String, status: String },
    /// A field has a value.
    Field { path: Vec<String>, value: String },
    /// The object exists.
    Exists,
    /// The object is gone.
    Gone,
}

impl Goal {
    fn parse(text: &str) -> Result<Self, Failure> {
        let unknown = || {
            Failure::new(format!("cannot wait for \"{text}\"")).advice(
                "say condition=Ready, condition=Ready=False, delete, create or jsonpath={.status.phase}=Running",
            )
        };
        if let Some(condition) = text.strip_prefix("condition=") {
            let (kind, status) = condition.split_once('=').unwrap_or((condition, "True"));
            return Ok(Self::Condition { kind: kind.to_owned(), status: status.to_owned() });
        }
        if let Some(expression) = text.strip_prefix("jsonpath=") {
            let (path, value) = expression.trim_matches('\'').split_once("}=").ok_or_else(unknown)?;
            let path = path.trim_start_matches('{').trim_start_matches('.');
            let path = path.split('.').map(str::to_owned).collect();
            return Ok(Self::Field { path, value: value.trim_matches('"').to_owned() });
        }
        match text {
            "delete" => Ok(Self::Gone),
            "create" => Ok(Self::Exists),
            _ => Err(unknown()),
        }
    }

    /// Whether an object, or its absence, is what is waited for.
    fn met(&self, object: Option<&Value>) -> bool {
        match (self, object) {
            (Self::Gone, None) | (Self::Exists, Some(_)) => true,
            (Self::Condition { kind, status }, Some(object)) => {
                let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
                let mut of_kind = conditions.filter(|one| text_is(&one["type"], kind));
                of_kind.any(|one| text_is(&one["status"], status))
            }
            (Self::Field { path, value }, Some(object)) => {
                let found = path.iter().fold(object, |at, step| &at[step.as_str()]);
                found.as_str().map_or_else(|| found.to_string(), str::to_owned) == *value
            }
            _ => false,
        }
    }
}

fn text_is(value: &Value, expect: &str) -> bool {
    value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(expect))
}

/// One object to wait for.
pub(crate) struct Waiting<'a> {
    pub(crate) client: &'a Client,
    /// The collection.
    pub(crate) path: &'a str,
    pub(crate) name: &'a str,
    /// The object in messages.
    pub(crate) label: &'a str,
}

/// Runs the command.
pub(crate) async fn run(options: &WaitOptions, target: &Target) -> Result<(), Failure> {
    let goal = Goal::parse(&options.what)?;
    let connection = connect(target).await?;
    let catalog = Catalog::of(&connection.client).await?;
    let deadline = tokio::time::Instant::now() + options.timeout;
    for selection in catalog.resolve(&options.resources)? {
        let path = selection.resource.path(Some(&connection.namespace), None);
        for name in chosen(options, &connection, &selection, &path).await? {
            let label = selection.resource.label(&name);
            let waiting = Waiting { client: &connection.client, path: &path, name: &name, label: &label };
            wait_for(&waiting, &goal, deadline.saturating_duration_since(tokio::time::Instant::now())).await?;
            say!("{label} {}", if goal == Goal::Gone { "deleted" } else { "condition met" });
        }
    }
    Ok(())
}

async fn chosen(
    options: &WaitOptions,
    connection: &Connection,
    selection: &Selection,
    path: &str,
) -> Result<Vec<String>, Failure> {
    if !selection.names.is_empty() {
        return Ok(selection.names.clone());
    }
    if !options.all && options.selector.is_none() {
        return Err(Failure::new(format!(
            "name the {} to wait for, or say --all or -l LABEL=VALUE",
            selection.resource.plural
        )));
    }
    let query: Vec<(&str, String)> =
        options.selector.iter().map(|selector| ("labelSelector", selector.clone())).collect();
    let found = names(&request::get(&connection.client, path, &query).await?);
    if found.is_empty() { Err(Failure::new("no matching resources found")) } else { Ok(found) }
}

/// Waits for one object, by watching it.
pub(crate) async fn wait_for(waiting: &Waiting<'_>, goal: &Goal, timeout: Duration) -> Result<(), Failure> {
    match tokio::time::timeout(timeout, watch_until(waiting, goal)).await {
        Ok(result) => result,
        Err(_) => Err(Failure::timed_out(format!("timed out waiting for {}", waiting.label))
            .advice(format!("`windlass describe {}` may say why; --timeout waits longer", waiting.label))),
    }
}

async fn watch_until(waiting: &Waiting<'_>, goal: &Goal) -> Result<(), Failure> {
    let query = vec![("fieldSelector", format!("metadata.name={}", waiting.name))];
    loop {
        let list = request::get(waiting.client, waiting.path, &query).await?;
        let object = list["items"].get(0);
        if goal.met(object) {
            return Ok(());
        }
        if object.is_none() && !matches!(goal, Goal::Exists) {
            return Err(Failure::new(format!("{} does not exist", waiting.label)));
        }
        let mut query = query.clone();
        query.push(("resourceVersion", list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned()));
        let mut events =
            std::pin::pin!(request::watch(waiting.client, waiting.path, &query, "application/json").await?);
        while let Some(event) = events.next().await {
            let event = event?;
            let met = match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => goal.met(Some(&event["object"])),
                Some("DELETED") if *goal == Goal::Gone => true,
                Some("DELETED") => return Err(Failure::new(format!("{} was deleted meanwhile", waiting.label))),
                Some("ERROR") => break, // Too old: list again.
                _ => false,
            };
            if met {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(goal: &str, object: Option<Value>, expect: bool) {
        assert_eq!(Goal::parse(goal).unwrap().met(object.as_ref()), expect, "{goal} {object:?}");
    }

    #[test]
    fn goals_are_met_by_the_right_objects() {
        let ready = |status: &str| Some(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        check("condition=Ready", ready("True"), true);
        check("condition=ready", ready("True"), true);
        check("condition=Ready", ready("False"), false);
        check("condition=Ready=false", ready("False"), true);
        check("condition=Ready", None, false);
        check("delete", None, true);
        check("delete", ready("True"), false);
        check("create", ready("True"), true);
        check("jsonpath={.status.phase}=Running", Some(json!({"status": {"phase": "Running"}})), true);
        check("jsonpath={.status.count}=3", Some(json!({"status": {"count": 3}})), true);
    }

    #[test]
    fn an_unknown_goal_says_what_there_is() {
        assert!(Goal::parse("ready").is_err());
        assert!(Goal::parse("jsonpath=.status.phase").is_err());
    }
}
