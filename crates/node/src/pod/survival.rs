//! Containers that an earlier node started: found again when their Pod is, and tended like any other.

use std::path::Path;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::container::{Job, Run};
use super::prober::Before;
use super::refusal::Refusal;
use super::worker::Worker;
use crate::sandbox::{self, Attachment, ContainerSpec, Input, Keep, Origin, Running};

/// A container of an earlier node.
pub(super) struct Survivor {
    running: Running,
    attachment: Attachment,
    /// What the Pod's status says of its probes.
    before: Before,
}

impl Worker {
    /// Takes charge of the containers that an earlier node left running.
    pub(super) async fn recover(&mut self) {
        let directory = self.context.pod_directory(&self.pod.uid().unwrap_or_default()).join("containers");
        let names: Vec<String> = self.observed.containers.keys().cloned().collect();
        for name in names {
            let mut newest = None;
            for number in runs(&directory.join(&name)) {
                let run = directory.join(&name).join(number.to_string());
                // An older run that still lives is ended as it is dropped.
                if let Ok(found) = sandbox::attach(&run).await
                    && newest.is_none()
                {
                    newest = Some((number, found));
                }
            }
            if let Some((number, (running, attachment))) = newest {
                self.resume(&name, number, running, attachment);
            }
        }
    }

    fn resume(&mut self, name: &str, number: i32, running: Running, attachment: Attachment) {
        let (Some(container), Some(addresses)) = (self.container(name), self.addresses()) else { return };
        let Some(observation) = self.observed.containers.get_mut(name) else { return };
        let since = Timestamp::try_from(attachment.started).unwrap_or_else(|_| Timestamp::now());
        let before = observation.resume(number, since, name, self.pod.status.as_ref());
        tracing::info!(
            pod = self.pod.name_any(),
            container = name,
            init = attachment.init,
            "a container is found again"
        );
        self.launch(container, addresses, number, Some(Survivor { running, attachment, before }));
    }
}

impl Job {
    /// How the container lives on if this node is killed. One that somebody may type into does not: what connects it with
    /// its terminal is this process.
    pub(super) fn keep(&self, spec: &ContainerSpec, origin: &Origin) -> Option<Keep> {
        let limit = self.context.config.survival;
        let keeps = !limit.is_zero() && spec.input == Input::Nothing && spec.neighbour.is_none();
        keeps.then(|| Keep { limit, origin: origin.clone() })
    }

    /// Goes on with a container that runs already.
    pub(super) fn go_on(&self, survivor: Survivor) -> Result<Run, Refusal> {
        let Survivor { running, attachment: Attachment { init, started, spec, takes_faults, .. }, before } = survivor;
        let refusal = |message: String| Refusal { reason: "CreateContainerError", message };
        let origin = spec.keep.as_ref().map(|keep| keep.origin.clone());
        let origin = origin.ok_or_else(|| refusal("it was not to be kept".to_owned()))?;
        let log = self.log().map_err(|error| refusal(error.to_string()))?;
        let started = Timestamp::try_from(started).unwrap_or_else(|_| Timestamp::now());
        let mut run =
            self.attend(running, &spec, (init, started, origin), log).map_err(|error| refusal(error.to_string()))?;
        run.before = Some(before);
        run.inside.takes_faults = takes_faults;
        Ok(run)
    }
}

/// The runs of a container that left a directory, the newest first.
fn runs(container: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir(container).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers
}
