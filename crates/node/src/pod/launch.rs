//! Starts the task of one run of a container.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Container;
use tokio::sync::watch;

use super::container::{self, Job};
use super::downward::Addresses;
use super::observed::State;
use super::survival::Survivor;
use super::worker::Worker;

impl Worker {
    /// Starts a container, or starts it again.
    pub(super) fn start(&mut self, name: &str) {
        let (Some(container), Some(addresses)) = (self.container(name), self.addresses()) else { return };
        let observation = self.observed.containers.entry(name.to_owned()).or_default();
        if let State::Ended(ended) = &observation.state {
            observation.last = Some(ended.clone());
            observation.restarts += 1;
        }
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
        self.tasks.insert(container.name.clone(), stop);
        let job = Job {
            context: Arc::clone(&self.context),
            pod: Arc::clone(&self.pod),
            number,
            container,
            addresses,
            sources: self.sources.clone(),
            volumes: Arc::clone(&self.volumes),
            updates: self.sender.clone(),
            stop: stopped,
            survivor,
        };
        tokio::spawn(container::run(job));
    }
}
