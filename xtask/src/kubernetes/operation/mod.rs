//! An operator at work on a real control plane, with Pods that run: installed, its leader killed and ended, upgraded.

mod audit;
mod installation;
mod leader;

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::kubectl::Kubectl;
use super::{ground, plane, programs};
use crate::subject::Subject;
use audit::Writes;
use installation::Installation;
use leader::Leader;

/// The name that resources begin with.
const RESOURCE: &str = "cache";
/// Pods of the operator itself, during a roll-out, and some room.
const OTHER_PODS: u32 = 20;

/// Runs it all on one control plane; everything ends with it.
pub(super) fn run(subject: &Subject, resources: usize) -> Result<()> {
    let windlass = subject.program()?;
    let installation = Installation::build(&windlass)?;
    let place = programs::place().join("operation");
    let outcome = (|| {
        let plane = plane::start(&place, true, None)?;
        let pods_max = u32::try_from(resources)? + OTHER_PODS;
        let node = plane::join(&plane, &windlass, pods_max)?;
        let kubectl = Kubectl::new(&plane.kubeconfig());
        let outcome = play(&kubectl, &installation, resources, &Writes::of(&plane::audit_log(&place)));
        // Its Pods and their network end with it, if it is asked.
        plane::end(node.release())?;
        outcome
    })();
    ground::give_back();
    outcome
}

fn play(kubectl: &Kubectl, installation: &Installation, resources: usize, writes: &Writes) -> Result<()> {
    installation.apply(kubectl, 1)?;
    println!("installed: two replicas, admitted at the restricted level");
    let begin = Instant::now();
    create(kubectl, 0..resources)?;
    settle(kubectl, resources)?;
    println!("{resources} resources ready after {:.1} s", begin.elapsed().as_secs_f64());
    let before = pods(kubectl)?;
    ensure!(before.len() == resources, "{} Pods for {resources} resources", before.len());

    let taken_over = Leader::find(kubectl)?.kill()?;
    println!("leader killed: the other led after {:.1} s", taken_over.as_secs_f64());
    create(kubectl, resources..resources + 1)?;
    settle(kubectl, resources + 1)?;
    installation.wait(kubectl)?;
    let taken_over = Leader::find(kubectl)?.end()?;
    println!("leader ended: the other led after {:.1} s", taken_over.as_secs_f64());
    create(kubectl, resources + 1..resources + 2)?;
    settle(kubectl, resources + 2)?;
    installation.wait(kubectl)?;
    writes.check(resources + 2)?;

    let written = writes.count()?;
    installation.apply(kubectl, 2)?;
    create(kubectl, resources + 2..resources + 3)?;
    settle(kubectl, resources + 3)?;
    let (after, more) = (pods(kubectl)?, writes.count()? - written);
    for (name, was) in &before {
        let is = after.iter().find(|(other, _)| other == name).map(|(_, pod)| pod);
        ensure!(is == Some(was), "{name} was {was} and is {is:?}");
    }
    println!("upgraded: {} Pods have the same uid and start; {more} writes, of a resource made since", before.len());
    writes.check(resources + 3)?;
    println!("no object was made twice, and no replica wrote without the lease");
    Ok(())
}

/// Makes resources of these numbers.
fn create(kubectl: &Kubectl, numbers: std::ops::Range<usize>) -> Result<()> {
    let one = |number: usize| {
        format!(
            "---\napiVersion: cache.example.com/v1alpha1\nkind: Memcached\n\
             metadata: {{name: {RESOURCE}-{number}, namespace: default}}\nspec: {{size: 1}}\n"
        )
    };
    kubectl.apply(&numbers.map(one).collect::<String>()).map(drop)
}

/// Waits until so many resources are ready.
fn settle(kubectl: &Kubectl, count: usize) -> Result<()> {
    let is_ready = |resource: &Value| {
        let mut conditions = resource["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let ready = |list: &Value| list["items"].as_array().into_iter().flatten().filter(|one| is_ready(one)).count();
    kubectl.get_until(&["memcacheds"], "all resources are ready", |list| ready(list) == count).map(drop)
}

/// The Pods of the resources: name, and what changes when one is made or started anew.
fn pods(kubectl: &Kubectl) -> Result<Vec<(String, String)>> {
    let list = kubectl.get(&["pods", "--namespace", "default"])?;
    let pods = list["items"].as_array().into_iter().flatten();
    Ok(pods
        .map(|pod| {
            let started = &pod["status"]["containerStatuses"][0];
            let life = format!(
                "{} {} {} {}",
                pod["metadata"]["uid"], pod["status"]["startTime"], started["containerID"], started["restartCount"]
            );
            (pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(), life)
        })
        .collect())
}
