//! Hands of others on what the operator made.

use anyhow::Result;
use serde_json::{Value, json};

use super::life::until_told;
use super::{image as image_of, is_labelled, labels, until_ready};
use crate::compare::operators::stage::Stage;

/// Replicas that the resource wants by now.
const SIZE: u32 = 3;

pub(super) fn replicas(stage: &mut Stage) -> Result<()> {
    stage.kubectl.run(&["scale", "deployment/cache", "--replicas=7"])?;
    stage.kubectl.until("deployment/cache", "is to have 3 replicas", |it| it["spec"]["replicas"] == SIZE)?;
    until_ready(stage, "cache", SIZE)
}

/// Each in its own words: that a Deployment was made is not what is asked for.
pub(super) fn told(stage: &mut Stage) -> Result<()> {
    const WORDS: [&str; 2] = ["changed", "updated"];
    until_told(stage, |text| text.contains("Deployment") && WORDS.iter().any(|word| text.contains(word)))
}

pub(super) fn image(stage: &mut Stage) -> Result<()> {
    let wanted = stage.kubectl.get("memcached/cache")?["spec"]["image"].clone();
    stage.kubectl.run(&["set", "image", "deployment/cache", "memcached=memcached:0.1"])?;
    stage.kubectl.until("deployment/cache", "is to have the image that is wanted", |it| *image_of(it) == wanted)?;
    until_ready(stage, "cache", SIZE)
}

pub(super) fn label(stage: &mut Stage) -> Result<()> {
    stage.kubectl.run(&["label", "deployment/cache", "--overwrite", "app.kubernetes.io/name=other"])?;
    stage.kubectl.until("deployment/cache", "is to have its label", |it| is_labelled(it, "cache"))?;
    Ok(())
}

pub(super) fn service(stage: &mut Stage) -> Result<()> {
    stage.kubectl.merge("service/cache", &json!({"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}))?;
    stage.kubectl.until("service/cache", "is to select the Pods", |it| it["spec"]["selector"] == labels("cache"))?;
    Ok(())
}

pub(super) fn recreate(stage: &mut Stage) -> Result<()> {
    for object in ["deployment/cache", "service/cache"] {
        let old = stage.kubectl.get(object)?["metadata"]["uid"].clone();
        stage.kubectl.run(&["delete", object, "--wait=false"])?;
        let is_new = |it: &Value| it["metadata"]["uid"].is_string() && it["metadata"]["uid"] != old;
        stage.kubectl.until(object, "is to come back", is_new)?;
    }
    until_ready(stage, "cache", SIZE)
}
