//! What happens while a cluster becomes what was asked for, as it happens.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::paint::{Colour, paint};
use super::readiness::{Readiness, judge};
use crate::commands::apply::Applied;
use crate::commands::request;
use crate::failure::Failure;
use crate::view::output::say;

/// Reports waiting to be shown; a slow terminal slows the watches, nothing is lost.
const REPORTS_MAX: usize = 256;
/// A watch that broke is opened again after this time.
const WATCH_RETRY: Duration = Duration::from_millis(500);

enum Report {
    Object {
        label: String,
        readiness: Readiness,
    },
    Event(Box<Value>),
    /// What a Pod waits for, such as an image in the making.
    Step(String),
}

/// Shows events and states until every object is ready.
pub(crate) async fn until_ready(client: &Client, objects: &[Applied], timeout: Duration) -> Result<(), Failure> {
    let (sender, reports) = mpsc::channel(REPORTS_MAX);
    let mut watches = JoinSet::new();
    for object in objects {
        watches.spawn(follow_object(
            client.clone(),
            object.resource.path(object.namespace.as_deref(), None),
            object.name.clone(),
            object.resource.label(&object.name),
            sender.clone(),
        ));
    }
    watches.spawn(follow_steps(client.clone(), sender.clone()));
    watches.spawn(follow_events(client.clone(), sender));
    let labels = objects.iter().map(|object| object.resource.label(&object.name));
    let mut states: HashMap<String, Option<Readiness>> = labels.map(|label| (label, None)).collect();
    match tokio::time::timeout(timeout, show(reports, &mut states)).await {
        Ok(result) => result,
        Err(_) => Err(timed_out(&states)),
    }
}

/// Shows events for as long as the cluster runs.
pub(crate) async fn show_events(client: Client) {
    let (sender, mut reports) = mpsc::channel(REPORTS_MAX);
    let watch = tokio::spawn(follow_events(client, sender));
    while let Some(report) = reports.recv().await {
        if let Report::Event(event) = report {
            print_event(&event);
        }
    }
    watch.abort();
}

async fn show(
    mut reports: mpsc::Receiver<Report>,
    states: &mut HashMap<String, Option<Readiness>>,
) -> Result<(), Failure> {
    while !states.values().all(|state| matches!(state, Some(Readiness::Ready(_)))) {
        match reports.recv().await {
            Some(Report::Event(event)) => print_event(&event),
            Some(Report::Step(line)) => say!("{}", paint(Colour::Dim, &line)),
            Some(Report::Object { label, readiness }) => {
                if states.get(&label) != Some(&Some(readiness.clone())) {
                    print_state(&label, &readiness);
                }
                if let Readiness::Stalled(why) = &readiness {
                    return Err(Failure::new(format!("{label} cannot become ready: {why}")));
                }
                states.insert(label, Some(readiness));
            }
            None => return Err(Failure::new("the cluster went away")),
        }
    }
    Ok(())
}

fn timed_out(states: &HashMap<String, Option<Readiness>>) -> Failure {
    let mut waiting: Vec<String> = states
        .iter()
        .filter_map(|(label, state)| match state {
            Some(Readiness::Ready(_)) => None,
            Some(Readiness::Waiting(text) | Readiness::Stalled(text)) => Some(format!("{label}: {text}")),
            None => Some(format!("{label}: no word yet")),
        })
        .collect();
    waiting.sort();
    Failure::timed_out(format!("not ready in time: {}", waiting.join("; ")))
        .advice("`windlass events -A` and `windlass describe` show what is in the way; --timeout waits longer")
}

fn print_state(label: &str, readiness: &Readiness) {
    let (mark, text) = match readiness {
        Readiness::Ready(text) => (paint(Colour::Green, "ready"), text),
        Readiness::Waiting(text) => (paint(Colour::Yellow, "waiting"), text),
        Readiness::Stalled(text) => (paint(Colour::Red, "stalled"), text),
    };
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    say!("{} {mark}{text}", paint(Colour::Bold, label));
}

fn print_event(event: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object =
        format!("{}/{}", text(&event["involvedObject"]["kind"]).to_lowercase(), text(&event["involvedObject"]["name"]));
    let line = format!("  {object}: {}", text(&event["message"]).trim());
    let colour = if event["type"] == "Warning" { Colour::Yellow } else { Colour::Dim };
    say!("{}", paint(colour, &line));
}

async fn follow_object(client: Client, path: String, name: String, label: String, reports: mpsc::Sender<Report>) {
    let selector = vec![("fieldSelector", format!("metadata.name={name}"))];
    while !reports.is_closed() {
        if let Ok(events) = request::watch(&client, &path, &selector, "application/json").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let readiness = match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => judge(&event["object"]),
                    Some("DELETED") => Readiness::Waiting("deleted".to_owned()),
                    _ => continue,
                };
                if reports.send(Report::Object { label: label.clone(), readiness }).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(WATCH_RETRY).await;
    }
}

/// Follows what containers wait for: an image that is made for the first time takes a while and says how far it is.
async fn follow_steps(client: Client, reports: mpsc::Sender<Report>) {
    let mut last: HashMap<String, String> = HashMap::new();
    while !reports.is_closed() {
        if let Ok(events) = request::watch(&client, "/api/v1/pods", &[], "application/json").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let Some(step) = waiting_for(&event["object"]) else { continue };
                if last.insert(name.clone(), step.clone()).as_ref() == Some(&step) {
                    continue;
                }
                if reports.send(Report::Step(format!("  pod/{name}: {step}"))).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(WATCH_RETRY).await;
    }
}

/// The message of a container that is being created; failures have events of their own.
fn waiting_for(pod: &Value) -> Option<String> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let waiting = statuses.iter().map(|status| &status["state"]["waiting"]);
    let creating = waiting.filter(|waiting| waiting["reason"] == "ContainerCreating");
    creating.filter_map(|waiting| waiting["message"].as_str()).find(|text| !text.is_empty()).map(str::to_owned)
}

/// Follows new events of all namespaces; what happened before this command is not shown.
async fn follow_events(client: Client, reports: mpsc::Sender<Report>) {
    let path = "/api/v1/events";
    let mut version = None;
    while !reports.is_closed() {
        if version.is_none() {
            let list = request::get(&client, path, &[("limit", "1".to_owned())]).await;
            version = list.ok().and_then(|list| list["metadata"]["resourceVersion"].as_str().map(str::to_owned));
        }
        let query = [("resourceVersion", version.clone().unwrap_or_default())];
        if let Ok(events) = request::watch(&client, path, &query, "application/json").await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                if event["type"] == "ERROR" {
                    version = None;
                    break;
                }
                version = event["object"]["metadata"]["resourceVersion"].as_str().map(str::to_owned);
                let shown = event["type"] == "ADDED" || event["type"] == "MODIFIED";
                if shown && reports.send(Report::Event(Box::new(event["object"].clone()))).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(WATCH_RETRY).await;
    }
}
