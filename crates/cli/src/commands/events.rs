//! `windlass events`: what happened, oldest first.

use futures::StreamExt;
use jiff::Timestamp;
use serde_json::Value;

use super::request;
use crate::arguments::{EventsOptions, Target};
use crate::connection::connect;
use crate::failure::Failure;
use crate::resource::Catalog;
use crate::view::columns::lay_out;
use crate::view::output::show;

/// Runs the command.
pub(crate) async fn run(options: &EventsOptions, target: &Target) -> Result<(), Failure> {
    let connection = connect(target).await?;
    let path = if options.all_namespaces {
        "/api/v1/events".to_owned()
    } else {
        format!("/api/v1/namespaces/{}/events", connection.namespace)
    };
    let mut query = Vec::new();
    if let Some(object) = &options.object {
        let catalog = Catalog::of(&connection.client).await?;
        let selection = catalog.resolve(std::slice::from_ref(object))?;
        let one = selection.first().filter(|one| one.names.len() == 1);
        let one = one.ok_or_else(|| Failure::new("say --for resource/name"))?;
        query.push((
            "fieldSelector",
            format!("involvedObject.kind={},involvedObject.name={}", one.resource.kind, one.names[0]),
        ));
    }
    let list = request::get(&connection.client, &path, &query).await?;
    let events = sorted(list["items"].as_array().cloned().unwrap_or_default());
    if events.is_empty() && !options.watch {
        eprintln!("No events found.");
        return Ok(());
    }
    let mut rows = vec![header()];
    rows.extend(events.iter().map(|event| row(event, Timestamp::now())));
    show!("{}", lay_out(&rows));
    if !options.watch {
        return Ok(());
    }
    query.push(("resourceVersion", list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned()));
    let mut changes = std::pin::pin!(request::watch(&connection.client, &path, &query, "application/json").await?);
    while let Some(change) = changes.next().await {
        let change = change?;
        if change["type"] == "ADDED" || change["type"] == "MODIFIED" {
            show!("{}", lay_out(&[row(&change["object"], Timestamp::now())]));
        }
    }
    Ok(())
}

/// Oldest first.
pub(crate) fn sorted(mut events: Vec<Value>) -> Vec<Value> {
    events.sort_by_key(last_seen);
    events
}

/// The titles of the columns of [`row`].
pub(crate) fn header() -> Vec<String> {
    ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"].map(str::to_owned).to_vec()
}

/// An event in columns.
pub(crate) fn row(event: &Value, now: Timestamp) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["involvedObject"];
    let count = event["series"]["count"].as_u64().or(event["count"].as_u64()).unwrap_or(1);
    let seen = last_seen(event).map_or_else(|| "<unknown>".to_owned(), |time| age(now, time));
    let seen = if count > 1 { format!("{seen} (x{count})") } else { seen };
    let name = format!("{}/{}", text(&object["kind"]).to_lowercase(), text(&object["name"]));
    vec![seen, text(&event["type"]), text(&event["reason"]), name, text(&event["message"]).trim().to_owned()]
}

fn last_seen(event: &Value) -> Option<Timestamp> {
    let series = &event["series"]["lastObservedTime"];
    [series, &event["lastTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]]
        .into_iter()
        .find_map(|value| value.as_str()?.parse().ok())
}

/// A length of time as kubectl prints ages: `45s`, `5m30s`, `3h`, `2d`.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        for (seconds, expect) in [
            (5, "5s"),
            (119, "119s"),
            (330, "5m30s"),
            (3600, "60m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
        ] {
            assert_eq!(age(now, now - jiff::SignedDuration::from_secs(seconds)), expect);
        }
    }
}
