//! The controller of definitions: names, establishing, deletion.
//!
//! It reacts to commits and decides from what is stored alone, so that a restart goes on where it stopped.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_schema::builtin;
use windlass_store::{CommitError, Revision, Snapshot, Store, WatchError, Write};

use super::{
    cleanup, conditions,
    definition::{CLEANUP_FINALIZER, Condition, Definition, GROUP, Names, RESOURCE},
    kind::{self, KindError},
    names::{self, Accepted, Taken},
};
use crate::{codec::json_bytes, registry::Registry};

/// The prefix of the keys of definitions.
pub(super) fn prefix() -> String {
    format!("/{GROUP}/{RESOURCE}/")
}

/// Serves the kinds of all established definitions; to be done before the first request.
pub(crate) fn restore(snapshot: &Snapshot, registry: &Registry) {
    serve_all(snapshot, registry, snapshot.revision());
}

fn serve_all(snapshot: &Snapshot, registry: &Registry, now: Revision) {
    for (_, entry) in snapshot.range(&prefix(), None) {
        let Ok(definition) = serde_json::from_slice::<Definition>(&entry.value) else { continue };
        if definition.is("Established") {
            serve(registry, &definition, || now);
        }
    }
}

/// Serves the kinds of `now` instead of those of `before`, without waiting for the controller.
pub(crate) fn replace(before: &Snapshot, now: &Snapshot, registry: &Registry, revision: Revision) {
    for (key, _) in before.range(&prefix(), None).filter(|(key, _)| now.get(key).is_none()) {
        registry.serve(&name_of(key), Vec::new());
    }
    serve_all(now, registry, revision);
}

/// Runs the controller until `stop`.
pub(crate) async fn run(store: Store, registry: Arc<Registry>, clock: Clock, stop: CancellationToken) {
    let mut controller = Controller {
        store,
        registry,
        clock,
        holdings: BTreeMap::new(),
        known: BTreeMap::new(),
        cleanups: JoinSet::new(),
        cleaning: BTreeSet::new(),
    };
    while let Some(()) = stop.run_until_cancelled(controller.follow()).await {
        tracing::debug!("following definitions from the start again");
    }
}

/// Serves the kinds of a definition. Objects that were written until then, which `now` tells, may have another schema.
fn serve(registry: &Registry, definition: &Definition, now: impl Fn() -> Revision) -> bool {
    match kind::kinds(definition) {
        Ok(kinds) => {
            registry.serve(&definition.metadata.name, kinds.clone());
            kinds.iter().for_each(|kind| kind.settle(now()));
            true
        }
        Err(error) => {
            refused(definition, &error);
            false
        }
    }
}

fn refused(definition: &Definition, error: &KindError) {
    tracing::warn!(
        definition = definition.metadata.name,
        error = error as &dyn std::error::Error,
        "the definition cannot be served"
    );
}

struct Controller {
    store: Store,
    registry: Arc<Registry>,
    clock: Clock,
    /// The names that definitions hold, by the name of the definition.
    holdings: BTreeMap<String, Holding>,
    /// What is served, by the name of the definition: only a change of it makes new kinds.
    known: BTreeMap<String, Basis>,
    cleanups: JoinSet<String>,
    cleaning: BTreeSet<String>,
}

/// The names that a definition holds in its group.
#[derive(Clone, Debug)]
struct Holding {
    group: String,
    names: Names,
    /// Whether it still wants others.
    waits: bool,
}

/// What the kinds of a definition are made from.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    spec: Value,
    names: Names,
    deleting: bool,
}

impl Controller {
    /// Brings everything up to date, then follows commits; returns if it fell behind.
    async fn follow(&mut self) {
        let snapshot = self.store.snapshot();
        let Ok(mut watch) = self.store.watch(&prefix(), snapshot.revision()) else { return };
        let stored: Vec<String> = snapshot.range(&prefix(), None).map(|(key, _)| name_of(key)).collect();
        let gone: Vec<String> = self.holdings.keys().filter(|name| !stored.contains(name)).cloned().collect();
        // Who holds a name is known before anybody else is given one.
        for (key, entry) in snapshot.range(&prefix(), None) {
            if let Ok(definition) = serde_json::from_slice::<Definition>(&entry.value) {
                self.hold(&name_of(key), &definition);
            }
        }
        for name in stored.iter().chain(&gone) {
            self.sync(name).await;
        }
        loop {
            tokio::select! {
                event = watch.next() => match event {
                    Ok(event) => self.changed(&name_of(&event.key)).await,
                    Err(WatchError::Closed) => return std::future::pending().await,
                    Err(_) => return,
                },
                Some(done) = self.cleanups.join_next() => {
                    if let Ok(name) = done {
                        self.cleaning.remove(&name);
                    }
                }
            }
        }
    }

    /// Looks at a definition, and at those that wait for a name that it may have given up.
    async fn changed(&mut self, name: &str) {
        self.sync(name).await;
        let group = name.split_once('.').map_or("", |(_, group)| group);
        let others =
            self.holdings.iter().filter(|(other, holding)| *other != name && holding.waits && holding.group == group);
        let waiting: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        for name in waiting {
            self.sync(&name).await;
        }
    }

    async fn sync(&mut self, name: &str) {
        // Another writer may be faster; its commit brings us back here.
        let snapshot = self.store.snapshot();
        let key = format!("{}{name}", prefix());
        let entry = snapshot.get(&key);
        let Some((entry, object)) =
            entry.and_then(|entry| Some((entry, serde_json::from_slice::<Value>(&entry.value).ok()?)))
        else {
            self.known.remove(name);
            self.holdings.remove(name);
            self.registry.serve(name, Vec::new());
            return;
        };
        let Ok(definition) = Definition::read(&object) else { return };
        self.hold(name, &definition);
        let accepted = names::accept(&definition, &self.taken(&definition));
        let may_serve = definition.is("Established") || accepted.condition.status == "True";
        let served = may_serve && self.serve(&object, &definition, &accepted);
        let now = self.clock.now();
        let mut next = with_status(&object, &definition, (accepted, served), now);
        if next != object {
            conditions::own(&object, &mut next, now);
            // Discovery, OpenAPI and the handlers know the kind by now: whoever sees the condition can rely on it.
            match self.store.commit(vec![Write::update(&key, entry.modified, json_bytes(&next))]).await {
                Ok(_) => self.hold(name, &Definition::read(&next).unwrap_or(definition.clone())),
                Err(CommitError::Precondition { .. }) => {}
                Err(error) => tracing::error!(definition = name, %error, "the status of the definition was not stored"),
            }
        }
        if definition.is_deleting() && definition.metadata.finalizers.iter().any(|it| it == CLEANUP_FINALIZER) {
            self.clean_up(name);
        }
    }

    /// Serves a definition unless what its kinds are made from is as before.
    fn serve(&mut self, object: &Value, definition: &Definition, accepted: &Accepted) -> bool {
        let name = &definition.metadata.name;
        let spec = object.get("spec").cloned().unwrap_or_default();
        let basis = Basis { spec, names: accepted.names.clone(), deleting: definition.is_deleting() };
        if self.known.get(name) == Some(&basis) {
            return true;
        }
        let mut definition = definition.clone();
        definition.status.accepted_names = accepted.names.clone();
        let served = serve(&self.registry, &definition, || self.store.revision());
        if served {
            self.known.insert(name.clone(), basis);
        }
        served
    }

    fn hold(&mut self, name: &str, definition: &Definition) {
        let holding = Holding {
            group: definition.spec.group.clone(),
            names: definition.status.accepted_names.clone(),
            waits: !definition.is("NamesAccepted"),
        };
        self.holdings.insert(name.to_owned(), holding);
    }

    /// The names that others of the same group have.
    fn taken(&self, definition: &Definition) -> Taken {
        let mut taken = Taken::default();
        for kind in builtin().kinds().iter().filter(|kind| kind.group == definition.spec.group) {
            taken.add(&Names {
                plural: kind.plural.clone(),
                singular: kind.singular.clone(),
                short_names: kind.short_names.clone(),
                kind: kind.kind.clone(),
                list_kind: kind.list_kind.clone(),
                categories: Vec::new(),
            });
        }
        for (name, holding) in &self.holdings {
            if *name != definition.metadata.name && holding.group == definition.spec.group {
                taken.add(&holding.names);
            }
        }
        taken
    }

    fn clean_up(&mut self, name: &str) {
        if self.cleaning.insert(name.to_owned()) {
            let (store, clock, name) = (self.store.clone(), self.clock.clone(), name.to_owned());
            self.cleanups.spawn(async move {
                cleanup::run(&store, &clock, &name).await;
                name
            });
        }
    }
}

fn name_of(key: &str) -> String {
    key.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The definition with the status that it should have.
fn with_status(object: &Value, definition: &Definition, (accepted, served): (Accepted, bool), now: Timestamp) -> Value {
    let mut next = object.clone();
    let names_accepted = accepted.condition.status == "True";
    conditions::set(&mut next, accepted.condition, now);
    if !definition.is("Established") {
        let (status, reason, message) = match (names_accepted, served) {
            (true, true) => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
            (true, false) => ("False", "Installing", "the initial names have been accepted"),
            (false, _) => ("False", "NotAccepted", "not all names are accepted"),
        };
        let condition = Condition {
            r#type: "Established".into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            ..Condition::default()
        };
        conditions::set(&mut next, condition, now);
    }
    next["status"]["acceptedNames"] = serde_json::to_value(accepted.names).expect("names are texts");
    next
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
