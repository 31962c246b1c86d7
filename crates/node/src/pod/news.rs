//! Takes in what the tasks of a Pod's containers tell.

use k8s_openapi::jiff::Timestamp;

use super::container::Update;
use super::observed::State;
use super::prober::Finding;
use super::worker::Worker;
use super::{ephemeral, plan, status};

impl Worker {
    /// Takes in what the task of a container tells.
    pub(super) fn take(&mut self, name: &str, update: Update) {
        let now = Timestamp::now();
        if let Update::Evicted(message) = update {
            return self.evict(message);
        }
        let Some(observation) = self.observed.containers.get_mut(name) else { return };
        match update {
            Update::Progress(message) => observation.state = State::Starting { message },
            Update::Fetching(image) => observation.fetching = Some(image),
            Update::Cancelled => {
                self.tasks.remove(name);
                let reason = "ContainerCreating".to_owned();
                observation.state = State::Waiting { reason, message: String::new(), retry: None };
            }
            Update::Refused { reason, message } => {
                self.tasks.remove(name);
                observation.refuse(reason.to_owned(), message, now);
            }
            Update::Started { at, image_id } => {
                observation.state = State::Running { since: at };
                observation.image_id = image_id;
                (observation.refusals, observation.refusal) = (0, None);
            }
            Update::Finding(finding) => self.take_finding(name, finding),
            Update::Rebound { resources, outcome } => self.take_rebound(name, resources, outcome),
            Update::Ended(ended) => {
                self.tasks.remove(name);
                observation.end(ended);
                self.report_crash(name);
            }
            Update::Evicted(_) => {}
        }
    }

    fn take_finding(&mut self, name: &str, finding: Finding) {
        let Some(observation) = self.observed.containers.get_mut(name) else { return };
        let field = ephemeral::field(&self.pod, name);
        match finding {
            Finding::Started => observation.started = true,
            Finding::Ready(ready) => observation.ready = ready,
            Finding::Unhealthy { probe, why } => {
                let message = format!("{probe} probe failed: {why}");
                self.context.events.warning(&*self.pod, Some(&field), "Unhealthy", message);
            }
            Finding::Dead { probe } => {
                let message = format!("Container {name} failed {probe} probe, will be restarted");
                self.kill(name, self.grace_of_probe(name, probe), message);
            }
        }
    }

    fn report_crash(&self, name: &str) {
        let (Some(container), Some(observation)) = (self.container(name), self.observed.containers.get(name)) else {
            return;
        };
        let Some(ended) = observation.ended().filter(|_| self.pod.metadata.deletion_timestamp.is_none()) else {
            return;
        };
        let field = ephemeral::field(&self.pod, name);
        if ended.code != 0 && !observation.resizing {
            let message = format!("Container {name} exited with code {}", ended.code);
            self.context.events.warning(&*self.pod, Some(&field), "Exited", message);
        }
        if !observation.restart_delay().is_zero() && plan::restarts(&self.pod, &container, ended.code) {
            let message = status::crash_event(&self.pod, name);
            self.context.events.warning(&*self.pod, Some(&field), "BackOff", message);
        }
    }
}
