//! An operator that may do nothing with one of the kinds that it makes.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::memcached;
use crate::compare::operators::kubectl::wait;
use crate::compare::operators::stage::Stage;

/// Changes take no longer than this, unless something that has nothing to do with them is in the way.
const PROMPT: Duration = Duration::from_secs(10);
/// How long nothing happens before a change: long enough for pauses after failures to grow, if they grow.
const QUIET: Duration = Duration::from_secs(30);
/// How many changes are tried, since one may come just when a pause ends.
const CHANGES: u32 = 3;

/// The operator is started without any right to Services.
pub(super) fn serves(stage: &mut Stage) -> Result<()> {
    stage.stop()?;
    allow(stage, false)?;
    stage.start()?;
    stage.kubectl.create(&memcached("open", json!({"size": 1})))?;
    alive(stage, "deployment/open", "is to have a replica", |it| it["spec"]["replicas"] == 1)?;
    Ok(())
}

pub(super) fn prompt(stage: &mut Stage) -> Result<()> {
    let mut longest = Duration::ZERO;
    for round in 0..CHANGES {
        std::thread::sleep(QUIET);
        let size = 2 + round % 2;
        stage.kubectl.merge("memcached/open", &json!({"spec": {"size": size}}))?;
        let took = alive(stage, "deployment/open", "is to follow", |it| it["spec"]["replicas"] == size)?;
        longest = longest.max(took);
    }
    ensure!(longest <= PROMPT, "one of {CHANGES} changes took {} s", longest.as_secs());
    Ok(())
}

pub(super) fn told(stage: &mut Stage) -> Result<()> {
    wait(|| {
        let about = "--field-selector=involvedObject.kind=Memcached,involvedObject.name=open";
        let events = stage.kubectl.list(&["events", about])?;
        let status = stage.kubectl.get("memcached/open")?["status"].to_string();
        let texts = events.iter().filter_map(|event| event["message"].as_str()).chain([status.as_str()]);
        let told = texts.into_iter().any(|text| text.to_lowercase().contains("forbidden"));
        Ok(if told { Ok(()) } else { Err(format!("neither the status nor {} events say it", events.len())) })
    })?;
    Ok(())
}

pub(super) fn recovers(stage: &mut Stage) -> Result<()> {
    allow(stage, true)?;
    alive(stage, "service/open", "is to be made", Value::is_object)?;
    Ok(())
}

/// Waits as the script does, but not for an operator that has ended.
fn alive(stage: &mut Stage, object: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Duration> {
    wait(|| {
        if is_so(&stage.kubectl.get(object)?) {
            return Ok(Ok(()));
        }
        if stage.has_ended()? {
            bail!("the operator has ended by itself");
        }
        Ok(Err(format!("{object} {what}")))
    })
}

/// Takes the rule about Services out of the operator's role, or puts one in.
fn allow(stage: &Stage, services: bool) -> Result<()> {
    let role = format!("clusterrole/{}", stage.role());
    let mut rules = stage.kubectl.get(&role)?["rules"].take();
    let list = rules.as_array_mut().with_context(|| format!("{role} has no rules"))?;
    list.retain(|rule| rule["resources"] != json!(["services"]));
    if services {
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        list.push(json!({"apiGroups": [""], "resources": ["services"], "verbs": verbs}));
    }
    stage.kubectl.merge(&role, &json!({"rules": rules}))
}
