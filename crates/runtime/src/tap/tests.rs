//! Calls on their way through the tap.

use std::convert::Infallible;
use std::sync::Mutex;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tower::service_fn;

use super::*;

/// A client of an API that answers everything with a ConfigMap, tapped.
fn tapped() -> (Tap, Client) {
    let answer = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "resourceVersion": "1"}});
    let service = service_fn(move |_: Request<Body>| {
        let body = Body::from(answer.to_string().into_bytes());
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    let tap = Tap::new(Clock::system(), Metrics::new());
    let client = tap.client(Client::new(service, "default"));
    (tap, client)
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "a")
}

#[tokio::test]
async fn every_call_is_recorded_and_writes_are_announced_before_their_caller_knows() {
    let (tap, client) = tapped();
    let announced = Arc::new(Mutex::new(Vec::new()));
    let heard = announced.clone();
    tap.on_write(Box::new(move |call, answer, _| {
        heard.lock().unwrap().push((call.verb, String::from_utf8_lossy(answer).contains("resourceVersion")));
    }));
    config_maps(&client).get("x").await.unwrap();
    config_maps(&client).create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    assert_eq!(*announced.lock().unwrap(), [("create", true)]);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    config_maps(&client).create(&dry, &ConfigMap::default()).await.unwrap();
    assert_eq!(announced.lock().unwrap().len(), 1, "a dry run changes nothing");

    let calls: Vec<_> = tap.journal().entries().iter().map(|entry| (entry.call.verb, entry.code)).collect();
    assert_eq!(calls, [("get", Some(200)), ("create", Some(200)), ("create", Some(200))]);
}

#[tokio::test]
async fn a_fenced_process_may_look_but_not_write() {
    let (tap, client) = tapped();
    tap.fence();
    assert!(config_maps(&client).get("x").await.is_ok());
    let refused = config_maps(&client).create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err();
    assert!(refused.to_string().contains("no longer leads"), "{refused}");
}

#[tokio::test]
async fn calls_can_be_answered_on_the_way() {
    let (tap, client) = tapped();
    tap.intercept(Some(Arc::new(|call, request, next| {
        if call.verb != "get" {
            return next(request);
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Box::pin(std::future::ready(Ok(response)))
    })));
    assert!(config_maps(&client).get("x").await.is_err());
    assert!(config_maps(&client).create(&PostParams::default(), &ConfigMap::default()).await.is_ok());
    tap.intercept(None);
    assert!(config_maps(&client).get("x").await.is_ok());
    assert_eq!(tap.journal().entries()[0].code, Some(503));
}

#[test]
fn the_journal_forgets_the_oldest() {
    let journal = Journal::default();
    for number in 0..JOURNAL_MAX + 5 {
        let call = Call::parse(&Method::GET, &format!("/api/v1/nodes/{number}"), None);
        let at = jiff::Timestamp::UNIX_EPOCH;
        journal.record(Entry { at, call, code: None, took: std::time::Duration::ZERO });
    }
    let entries = journal.entries();
    assert_eq!((entries.len(), entries[0].call.name.as_deref()), (JOURNAL_MAX, Some("5")));
}
