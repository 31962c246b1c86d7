//! Starts the task of one run of a container.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio::sync::watch;

use super::bounds::Bounds;
use super::container::{self, Job};
use super::downward::Addresses;
use super::observed::State;
use super::survival::Survivor;
use super::worker::Worker;

/// What the task of a container is told.
pub(super) struct Orders {
    /// To end, within this time.
    pub(super) stop: watch::Sender<Option<Duration>>,
    /// What it may use.
    pub(super) bounds: watch::Sender<Bounds>,
}

impl Worker {
    /// Starts a container, or starts it again.
    pub(super) fn start(&mut self, name: &str) {
        let (Some(container), Some(addresses)) = (self.container(name), self.addresses()) else { return };
        let observation = self.observed.containers.entry(name.to_owned()).or_default();
        if let State::Ended(ended) = &observation.state {
            observation.last = Some(ended.clone());
            observation.restarts += 1;
        }
        (observation.resizing, observation.fetching) = (false, None);
        observation.state = State::Starting { message: String::new() };
        let number = observation.restarts;
        self.launch(container, addresses, number, None);
    }

    /// Lets a task of its own see to run `number` of a container.
    pub(super) fn launch(
        &mut self,
        container: Container,
        addresses: Addresses,
        number: i32,
        survivor: Option<Survivor>,
    ) {
        let (stop, stopped) = watch::channel(None);
        let resources = container.resources.clone().unwrap_or_default();
        // A Pod of which nothing ran yet is held to what it was promised in the meantime.
        if self.observed.held.containers.is_empty() {
            self.observed.held.whole.clone_from(&self.observed.promised.whole);
        }
        self.observed.held.containers.insert(container.name.clone(), resources.clone());
        let (bounds, bound) = watch::channel(Bounds { resources, pod: self.whole_memory(&self.observed.held) });
        self.tasks.insert(container.name.clone(), Orders { stop, bounds });
        let job = Job {
            context: Arc::clone(&self.context),
            pod: Arc::new(self.observed.promised.imposed(&self.pod)),
            number,
            container,
            addresses,
            sources: self.sources.clone(),
            volumes: Arc::clone(&self.volumes),
            updates: self.sender.clone(),
            stop: stopped,
            bounds: bound,
            survivor,
        };
        tokio::spawn(container::run(job));
    }
}
