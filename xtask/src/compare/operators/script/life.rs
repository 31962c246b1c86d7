//! From the creation of a resource to its deletion.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{DEFAULT_IMAGE, image, is_labelled, labels, memcached, selector, until_ready};
use crate::compare::operators::kubectl::wait;
use crate::compare::operators::stage::Stage;

pub(super) fn create(stage: &mut Stage) -> Result<()> {
    let kubectl = &stage.kubectl;
    kubectl.create(&memcached("cache", json!({"size": 2})))?;
    let uid = kubectl.get("memcached/cache")?["metadata"]["uid"].clone();
    let is_owned = |it: &Value| {
        let owner = &it["metadata"]["ownerReferences"][0];
        owner["uid"] == uid && owner["controller"] == true && is_labelled(it, "cache")
    };
    let made = |it: &Value| is_owned(it) && it["spec"]["replicas"] == 2 && image(it) == DEFAULT_IMAGE;
    kubectl.until("deployment/cache", "is to have 2 replicas", made)?;
    let made = |it: &Value| {
        let spec = &it["spec"];
        is_owned(it)
            && spec["clusterIP"] == "None"
            && spec["selector"] == labels("cache")
            && spec["ports"][0]["port"] == 11211
    };
    kubectl.until("service/cache", "is to be headless", made)?;
    Ok(())
}

pub(super) fn ready(stage: &mut Stage) -> Result<()> {
    until_ready(stage, "cache", 2)
}

pub(super) fn status(stage: &mut Stage) -> Result<()> {
    let kubectl = &stage.kubectl;
    wait(|| {
        let status = kubectl.get("memcached/cache")?["status"].take();
        let pods = kubectl.list(&["pods", "-l", &selector("cache")])?;
        let names: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        let told: BTreeSet<&str> = status["nodes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let parts: BTreeSet<&str> = status["selector"].as_str().unwrap_or_default().split(',').collect();
        let wanted = selector("cache");
        let is_so = names == told && status["replicas"] == names.len() && parts == wanted.split(',').collect();
        Ok(if is_so { Ok(()) } else { Err(format!("the Pods are {names:?}, the status says {status}")) })
    })?;
    Ok(())
}

pub(super) fn events(stage: &mut Stage) -> Result<()> {
    until_told(stage, |text| text.contains("Deployment"))
}

/// Waits for an event on the resource whose message is so.
pub(super) fn until_told(stage: &Stage, is_so: impl Fn(&str) -> bool) -> Result<()> {
    wait(|| {
        let about = "--field-selector=involvedObject.kind=Memcached,involvedObject.name=cache";
        let events = stage.kubectl.list(&["events", about])?;
        let told = events.iter().any(|event| event["message"].as_str().is_some_and(&is_so));
        Ok(if told { Ok(()) } else { Err(format!("{} events, none about the Deployment", events.len())) })
    })?;
    Ok(())
}

/// The resource and a child are changed while nobody looks.
pub(super) fn restart(stage: &mut Stage) -> Result<()> {
    stage.stop()?;
    let changed = (|| {
        stage.kubectl.merge("memcached/cache", &json!({"spec": {"size": 4}}))?;
        stage.kubectl.merge("service/cache", &json!({"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}))
    })();
    stage.start()?;
    changed?;
    until_ready(stage, "cache", 4)?;
    stage.kubectl.until("service/cache", "is to select the Pods", |it| it["spec"]["selector"] == labels("cache"))?;
    Ok(())
}

pub(super) fn delete(stage: &mut Stage) -> Result<()> {
    let kubectl = &stage.kubectl;
    ensure!(!kubectl.list(&["pods", "-l", &selector("cache")])?.is_empty(), "there is nothing to delete");
    kubectl.run(&["delete", "memcached/cache", "--timeout=60s"])?;
    wait(|| {
        let left = kubectl.list(&["deployments,replicasets,pods,services", "-l", &selector("cache")])?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{} objects are left", left.len())) })
    })?;
    Ok(())
}
