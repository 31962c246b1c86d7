//! What watches tell of a story, by version, selector and form.

use serde_json::Value;

use super::call::{Answer, Call};
use super::story::{METADATA, TABLE};

/// Watches of everything since a version of each server; a server ends them by itself.
///
/// Each way to ask is one request: all, by label, by field, from the state of now, and in other forms.
pub(super) fn calls(path: &str, name: &str, since: &str) -> Vec<Call> {
    let watch = |verb: &'static str, options: String, accept: &'static str| {
        let path = format!("{path}?watch=true&timeoutSeconds=1&{options}");
        Call { accept, ..Call::new(verb, "GET", path, None) }
    };
    let json = "application/json";
    let since = format!("resourceVersion={since}");
    // Not from version 1: how long a server remembers is its own affair, and Windlass remembers from the first on.
    vec![
        watch("watch", since.clone(), json),
        watch("watch-label", format!("{since}&labelSelector=app%3Da"), json),
        watch("watch-absence", format!("{since}&labelSelector=!app"), json),
        watch("watch-field", format!("{since}&fieldSelector=metadata.name%3D{name}"), json),
        watch("watch-table", since.clone(), TABLE),
        watch("watch-table-whole", format!("{since}&includeObject=Object"), TABLE),
        watch("watch-metadata", format!("{since}&labelSelector=app"), METADATA),
        watch("watch-now", "labelSelector=app%3Da".to_owned(), json),
        watch("watch-zero", "resourceVersion=0&labelSelector=app%3Da".to_owned(), json),
        watch("watch-initial", initial(""), json),
        watch("watch-initial-label", initial("&labelSelector=app%3Da"), json),
        watch("watch-initial-table", initial(""), TABLE),
        watch("watch-initial-metadata", initial(""), METADATA),
    ]
}

fn initial(more: &str) -> String {
    let bookmarks = "allowWatchBookmarks=true";
    format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&{bookmarks}{more}")
}

/// The answer without the bookmarks that a server may send at any time.
pub(super) fn settled(mut answer: Answer) -> Answer {
    if let Value::Array(events) = &mut answer.body {
        let ends = |event: &Value| {
            let annotations = &event["object"]["metadata"]["annotations"];
            let row = &event["object"]["rows"][0]["object"]["metadata"]["annotations"];
            [annotations, row].iter().any(|notes| notes.get("k8s.io/initial-events-end").is_some())
        };
        events.retain(|event| event["type"] != "BOOKMARK" || ends(event));
        // Besides its version a bookmark is what the zero of a Go struct looks like, or a row of it.
        for event in events.iter_mut().filter(|event| event["type"] == "BOOKMARK") {
            let object = event["object"].take();
            event["object"] = serde_json::json!({ "kind": object["kind"], "apiVersion": object["apiVersion"] });
        }
    }
    answer
}
