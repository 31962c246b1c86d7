//! What the replicas of the operator wrote, as the API server logged it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::installation::{NAME, NAMESPACE};

/// The lease by which replicas know who leads.
const LEASES: &str = "leases";
/// Kinds that the operator makes for a resource.
const CHILDREN: [&str; 2] = ["deployments", "services"];

/// The audit log of an API server.
pub(super) struct Writes {
    log: PathBuf,
}

/// A write of the operator to what it manages, or to its lease.
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

    /// How many writes to what it manages there are.
    pub(super) fn count(&self) -> Result<usize> {
        Ok(self.read()?.iter().filter(|write| write.resource != LEASES).count())
    }

    /// Nothing was done twice: each child of `resources` was made once, and every write was that of the replica that
    /// was the last to take or renew the lease.
    pub(super) fn check(&self, resources: usize) -> Result<()> {
        let writes = self.read()?;
        for (child, times) in made(&writes) {
            ensure!(times == 1, "{child} was made {times} times");
        }
        let children = CHILDREN.len() * resources;
        ensure!(made(&writes).len() == children, "{} children for {resources} resources", made(&writes).len());
        let strays = strays(&writes);
        ensure!(strays.is_empty(), "written by a replica that did not lead: {strays:?}");
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
    let is_managed = [LEASES, "memcacheds"].contains(&resource.as_str()) || CHILDREN.contains(&resource.as_str());
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
    for write in writes.iter().filter(|write| write.is_new && write.resource != LEASES) {
        *made.entry(format!("{}/{}", write.resource, write.name)).or_default() += 1;
    }
    made
}

/// Writes of replicas that did not have the lease.
fn strays(writes: &[Write]) -> Vec<&Write> {
    let (mut holder, mut strays) = ("", Vec::new());
    for write in writes {
        if write.resource == LEASES {
            holder = &write.pod;
        } else if write.pod != holder {
            strays.push(write);
        }
    }
    strays
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
        assert_eq!(write(&event(operator, "secrets", 200, "a")), None);
        assert_eq!(write(&event(operator, "deployments", 409, "a")), None);
        assert_eq!(write(&event("system:kube-controller-manager", "deployments", 200, "")), None);
    }

    #[test]
    fn who_writes_has_the_lease() {
        let operator = "system:serviceaccount:memcached-system:memcached-operator";
        let one = |(resource, pod): (&str, &str)| write(&event(operator, resource, 201, pod)).unwrap();
        let well = [("leases", "a"), ("services", "a"), ("leases", "b"), ("services", "b")].map(one);
        assert_eq!(strays(&well), [] as [&Write; 0]);
        let late = [("leases", "a"), ("leases", "b"), ("services", "a")].map(one);
        assert_eq!(strays(&late), [&late[2]]);
        assert_eq!(made(&well), BTreeMap::from([("services/x".to_owned(), 2)]));
    }
}
