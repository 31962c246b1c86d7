//! Changes of the resource, good and bad.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::{memcached, selector, until_ready};
use crate::compare::operators::kubectl::wait;
use crate::compare::operators::stage::Stage;

/// How many objects are bad at once: more than any of the implementations works on at the same time by default.
const BAD: usize = 20;

pub(super) fn refused(stage: &mut Stage) -> Result<()> {
    for spec in [json!({"size": 0}), json!({"size": 17}), json!({"size": 1, "image": "a b"})] {
        match stage.kubectl.create(&memcached("refused", spec.clone())) {
            Ok(()) => {
                stage.kubectl.run(&["delete", "memcached/refused"])?;
                bail!("{spec} was accepted");
            }
            Err(why) => ensure!(format!("{why}").contains("is invalid"), "{spec} failed otherwise: {why}"),
        }
    }
    Ok(())
}

pub(super) fn scale(stage: &mut Stage) -> Result<()> {
    stage.kubectl.run(&["scale", "memcached/cache", "--replicas=3"])?;
    stage.kubectl.until("deployment/cache", "is to have 3 replicas", |it| it["spec"]["replicas"] == 3)?;
    until_ready(stage, "cache", 3)
}

pub(super) fn image(stage: &mut Stage) -> Result<()> {
    const NEW: &str = "memcached:1.7";
    stage.kubectl.merge("memcached/cache", &json!({"spec": {"image": NEW}}))?;
    wait(|| {
        let pods = stage.kubectl.list(&["pods", "-l", &selector("cache")])?;
        let is_new = |pod: &Value| pod["spec"]["containers"][0]["image"] == NEW;
        let all = pods.len() == 3 && pods.iter().all(is_new);
        Ok(if all { Ok(()) } else { Err(format!("{} Pods, not all with {NEW}", pods.len())) })
    })?;
    until_ready(stage, "cache", 3)
}

/// A name may have 253 letters and a label 63, so such a resource is accepted, and its Deployment never.
pub(super) fn bad_neighbour(stage: &mut Stage) -> Result<()> {
    let name = |index: usize| format!("{}-{index}", "bad".repeat(23));
    for index in 0..BAD {
        stage.kubectl.create(&memcached(&name(index), json!({"size": 1})))?;
    }
    stage.kubectl.create(&memcached("good", json!({"size": 1})))?;
    let served = until_ready(stage, "good", 1);
    let mut words = vec!["delete".to_owned(), "memcached".to_owned(), "good".to_owned(), "--timeout=60s".to_owned()];
    words.extend((0..BAD).map(name));
    stage.kubectl.run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    served
}

/// Paused by the annotation that `words` of the implementations without it would name, if they had one.
pub(super) fn pause(stage: &mut Stage) -> Result<()> {
    let kubectl = &stage.kubectl;
    let set = |value: Value| {
        kubectl.merge("memcached/cache", &json!({"metadata": {"annotations": {"windlass.dev/paused": value}}}))
    };
    let before = kubectl.get("memcached/cache")?["spec"]["size"].clone();
    set("true".into())?;
    let is_paused = |it: &Value| {
        let conditions = it["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Paused" && condition["status"] == "True")
    };
    kubectl.until("memcached/cache", "is to be paused", is_paused)?;
    kubectl.merge("memcached/cache", &json!({"spec": {"size": 5}}))?;
    // The operator is at work: it serves another one.
    kubectl.create(&memcached("other", json!({"size": 1})))?;
    until_ready(stage, "other", 1)?;
    kubectl.run(&["delete", "memcached/other", "--timeout=60s"])?;
    let replicas = kubectl.get("deployment/cache")?["spec"]["replicas"].clone();
    ensure!(replicas == before, "the Deployment has {replicas} replicas");
    set(Value::Null)?;
    until_ready(stage, "cache", 5)
}
