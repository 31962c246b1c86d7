//! Whether other servers can be reached, told in the status of their APIServices.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_store::{Snapshot, Store, Write};

use super::{
    PREFIX,
    description::Description,
    extension::{Extensions, address},
    remote::{Remote, Remotes, Target},
};
use crate::{
    codec::json_bytes,
    object::now,
    webhook::{UnservedError, service_addresses},
};

/// How often servers are asked whether they are there.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often they are asked what their kinds look like.
const DESCRIPTION_INTERVAL: Duration = Duration::from_secs(60);

/// Why a server cannot be reached: reason and message of the condition.
type Absence = (&'static str, String);

/// Keeps `remotes` and the conditions of their APIServices in step with the world, until `stop`.
pub(crate) async fn keep(store: Store, remotes: Arc<Remotes>, extensions: Arc<Extensions>, stop: CancellationToken) {
    let mut described = Described::new();
    loop {
        let snapshot = store.snapshot();
        let Ok(mut watch) = store.watch(PREFIX, snapshot.revision()) else { continue };
        let all = with_known(Remote::all(&snapshot), &remotes.all());
        let idle = all.is_empty();
        // Known at once, so that nobody else answers for them.
        remotes.set(all.clone());
        let checked = join_all(all.into_iter().map(|remote| check(&snapshot, remote, &extensions))).await;
        remotes.set(checked.iter().map(|(remote, _)| remote.clone()).collect());
        // Before they are said to be available, so that who waits for that finds their kinds described.
        let all = checked.iter().map(|(remote, _)| remote.clone()).collect();
        remotes.set(describe(all, &extensions, &mut described).await);
        report(&store, &checked).await;
        tokio::select! {
            () = stop.cancelled() => return,
            event = watch.next() => if event == Err(windlass_store::WatchError::Closed) { return },
            () = tokio::time::sleep(INTERVAL), if !idle => {}
        }
    }
}

/// The same with what was found out about them before.
fn with_known(mut all: Vec<Remote>, known: &[Remote]) -> Vec<Remote> {
    for remote in &mut all {
        let before = known.iter().find(|known| known.name == remote.name && known.target == remote.target);
        if let Some(before) = before {
            remote.resources.clone_from(&before.resources);
            remote.description.clone_from(&before.description);
            remote.is_available = before.is_available;
        }
    }
    all
}

async fn check(snapshot: &Snapshot, mut remote: Remote, extensions: &Extensions) -> (Remote, Option<Absence>) {
    let absence = match reach(snapshot, &remote, extensions).await {
        Ok(resources) => {
            remote.resources = Some(Arc::new(resources));
            remote.is_available = true;
            None
        }
        Err(absence) => {
            remote.resources = None;
            remote.is_available = false;
            Some(absence)
        }
    };
    (remote, absence)
}

/// When each server was last asked what its kinds look like, by its APIService.
type Described = HashMap<(String, Target), Instant>;

/// The same with what servers say of their kinds, as far as it is time to ask them.
async fn describe(mut all: Vec<Remote>, extensions: &Extensions, described: &mut Described) -> Vec<Remote> {
    let key = |remote: &Remote| (remote.name.clone(), remote.target.clone());
    described
        .retain(|known, when| when.elapsed() < DESCRIPTION_INTERVAL && all.iter().any(|remote| key(remote) == *known));
    let due = all.iter_mut().filter(|remote| remote.is_available && !described.contains_key(&key(remote)));
    let asked = join_all(due.map(async |remote| {
        match Description::of(remote, extensions).await {
            Ok(description) => remote.description = Some(description),
            Err(why) => tracing::debug!(why, name = remote.name, "a server does not describe its kinds"),
        }
        key(remote)
    }));
    let asked = asked.await;
    described.extend(asked.into_iter().map(|key| (key, Instant::now())));
    all
}

/// The resources that the server tells of.
async fn reach(snapshot: &Snapshot, remote: &Remote, extensions: &Extensions) -> Result<Vec<Value>, Absence> {
    let target = &remote.target;
    let place = format!("service/{} in {:?}", target.service, target.namespace);
    let found = service_addresses(snapshot, &target.namespace, &target.service, target.port);
    found.map_err(|error| match error {
        UnservedError::NotFound(_) => ("ServiceNotFound", format!("{place} is not present")),
        UnservedError::NotListening(port, _) => {
            ("ServicePortError", format!("{place} is not listening on port {port}"))
        }
        UnservedError::WithoutEndpoints(_) => ("MissingEndpoints", format!("endpoints for {place} have no addresses")),
    })?;
    let path = format!("/apis/{}/{}", remote.group, remote.version);
    let answer = extensions.ask(target, &path).await;
    let mut answer = answer.map_err(|why| {
        let place = address(target, &path);
        ("FailedDiscoveryCheck", format!("failing or missing response from {place}: {why}"))
    })?;
    match answer["resources"].take() {
        Value::Array(resources) => Ok(resources),
        _ => Ok(Vec::new()),
    }
}

/// Writes the conditions that changed.
async fn report(store: &Store, checked: &[(Remote, Option<Absence>)]) {
    for (remote, absence) in checked {
        let snapshot = store.snapshot();
        let key = format!("{PREFIX}{}", remote.name);
        let Some(entry) = snapshot.get(&key) else { continue };
        let Ok(mut object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        if !set_condition(&mut object, absence.as_ref()) {
            continue;
        }
        let write = Write::update(key, entry.modified, json_bytes(&object));
        if let Err(error) = store.commit(vec![write]).await {
            tracing::debug!(%error, name = remote.name, "an APIService changed while it was checked");
        }
    }
}

/// Says in the object whether its server is there; false if it says so already.
fn set_condition(object: &mut Value, absence: Option<&Absence>) -> bool {
    let (status, reason, message) = match absence {
        None => ("True", "Passed", "all checks passed"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let known = object.pointer("/status/conditions/0").cloned().unwrap_or_default();
    if known["status"] == status && known["reason"] == reason && known["message"] == message {
        return false;
    }
    let since = if known["status"] == status { known["lastTransitionTime"].clone() } else { now().into() };
    let condition = json!({
        "type": "Available", "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    object["status"] = json!({"conditions": [condition]});
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_when_it_changes() {
        let mut object = json!({"status": {}});
        assert!(set_condition(&mut object, None));
        assert!(!set_condition(&mut object, None));
        let absence = ("ServiceNotFound", "service/s in \"n\" is not present".to_owned());
        assert!(set_condition(&mut object, Some(&absence)));
        assert_eq!(object["status"]["conditions"][0]["status"], "False");
        assert!(!set_condition(&mut object, Some(&absence)));
    }
}
