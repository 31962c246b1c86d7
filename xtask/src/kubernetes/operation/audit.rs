//! What the replicas of the operator wrote, as the API server logged it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::installation::{NAME, NAMESPACE};

/// How often another replica takes over while this is watched: a kill, an end, and a roll-out, in which each of two may lead.
const TAKEOVERS_MAX: usize = 5;
/// Kinds that the operator makes for a resource.
const CHILDREN: [&str; 2] = ["deployments", "services"];

/// The audit log of an API server.
pub(super) struct Writes {
    log: PathBuf,
}

/// A write of the operator to what it manages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    at: String,
    /// The replica that wrote.
    pod: String,
    resource: String,
    name: String,
    /// Whether the object was made by it.
    is_new: bool,
}

impl Writes {
    pub(super) fn of(log: &Path) -> Self {
        Self { log: log.to_owned() }
    }

    /// How many writes there are.
    pub(super) fn count(&self) -> Result<usize> {
        Ok(self.read()?.len())
    }

    /// Nothing was done twice: each child of `resources` was made once, and no replica wrote between the writes of another.
    pub(super) fn check(&self, resources: usize) -> Result<()> {
        let writes = self.read()?;
        for (child, times) in made(&writes) {
            ensure!(times == 1, "{child} was made {times} times");
        }
        let children = CHILDREN.len() * resources;
        ensure!(made(&writes).len() == children, "{} children for {resources} resources", made(&writes).len());
        let turns = turns(&writes);
        ensure!(turns.len() <= TAKEOVERS_MAX, "replicas wrote by turns: {turns:?}");
        Ok(())
    }

    fn read(&self) -> Result<Vec<Write>> {
        let text = fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let mut writes: Vec<Write> = text.lines().filter_map(|line| write(&serde_json::from_str(line).ok()?)).collect();
        writes.sort_by(|one, other| one.at.cmp(&other.at));
        Ok(writes)
    }
}

/// The write that an event of the log tells of, if the operator did it and it was accepted.
fn write(event: &Value) -> Option<Write> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let user = format!("system:serviceaccount:{NAMESPACE}:{NAME}");
    let (object, code) = (&event["objectRef"], event["responseStatus"]["code"].as_u64()?);
    let resource = text(&object["resource"]);
    let is_managed = resource == "memcacheds" || CHILDREN.contains(&resource.as_str());
    if event["user"]["username"] != user || !is_managed || !(200..300).contains(&code) {
        return None;
    }
    let pod = &event["user"]["extra"]["authentication.kubernetes.io/pod-name"][0];
    Some(Write {
        at: text(&event["requestReceivedTimestamp"]),
        pod: text(pod),
        name: text(&object["name"]),
        is_new: code == 201,
        resource,
    })
}

/// How often each object was made.
fn made(writes: &[Write]) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for write in writes.iter().filter(|write| write.is_new) {
        *made.entry(format!("{}/{}", write.resource, write.name)).or_default() += 1;
    }
    made
}

/// The replicas in the order in which they wrote, each once for all that it wrote before another did.
fn turns(writes: &[Write]) -> Vec<&str> {
    let mut turns: Vec<&str> = writes.iter().map(|write| write.pod.as_str()).collect();
    turns.dedup();
    turns
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(user: &str, resource: &str, code: u64, pod: &str) -> Value {
        json!({
            "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z", "responseStatus": {"code": code},
            "user": {"username": user, "extra": {"authentication.kubernetes.io/pod-name": [pod]}},
            "objectRef": {"resource": resource, "name": "x"},
        })
    }

    #[test]
    fn writes_of_the_operator_are_told_from_others() {
        let operator = "system:serviceaccount:memcached-system:memcached-operator";
        let made = write(&event(operator, "deployments", 201, "a")).unwrap();
        assert_eq!((made.pod.as_str(), made.is_new), ("a", true));
        assert!(!write(&event(operator, "memcacheds", 200, "a")).unwrap().is_new);
        assert_eq!(write(&event(operator, "leases", 200, "a")), None);
        assert_eq!(write(&event(operator, "deployments", 409, "a")), None);
        assert_eq!(write(&event("system:kube-controller-manager", "deployments", 200, "")), None);
    }

    #[test]
    fn turns_are_counted() {
        let operator = "system:serviceaccount:memcached-system:memcached-operator";
        let writes: Vec<Write> =
            ["a", "a", "b", "a"].map(|pod| write(&event(operator, "services", 201, pod)).unwrap()).into();
        assert_eq!(turns(&writes), ["a", "b", "a"]);
        assert_eq!(made(&writes), BTreeMap::from([("services/x".to_owned(), 4)]));
    }
}
