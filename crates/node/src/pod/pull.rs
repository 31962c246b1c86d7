//! Gets the image of a container, and tells how that goes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::container::{Job, Update};
use super::ephemeral;
use super::observed::PULL_FAILED;
use super::refusal::Refusal;
use super::worker::Worker;
use crate::image::{Image, ImageError, PullPolicy};

/// Progress of an image is reported no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

impl Job {
    /// The image of the container, which may have to be made first.
    pub(super) async fn image(&self) -> Result<Image, Refusal> {
        let name = self.container.image.clone().unwrap_or_default();
        self.fetch(&name, self.container.image_pull_policy.as_deref()).await
    }

    /// Where the volumes are that the container mounts, those that are images included.
    pub(super) async fn places(&self) -> Result<BTreeMap<String, PathBuf>, Refusal> {
        let mut places = (*self.volumes).clone();
        let volumes = self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mounted = |name: &str| self.container.volume_mounts.iter().flatten().any(|mount| mount.name == name);
        for volume in volumes.filter(|volume| mounted(&volume.name)) {
            let Some(source) = &volume.image else { continue };
            let reference = source.reference.clone().unwrap_or_default();
            self.tell(Update::Fetching(reference.clone())).await;
            let image = self.fetch(&reference, source.pull_policy.as_deref()).await?;
            let files = image.rootfs.ok_or_else(|| Refusal {
                reason: "CreateContainerConfigError",
                message: format!("volume \"{}\": the image {reference:?} has no files of its own", volume.name),
            })?;
            places.insert(volume.name.clone(), files);
        }
        Ok(places)
    }

    async fn fetch(&self, name: &str, policy: Option<&str>) -> Result<Image, Refusal> {
        let policy = match policy {
            Some("Always") => PullPolicy::Always,
            Some("Never") => PullPolicy::Never,
            _ => PullPolicy::IfNotPresent,
        };
        let begun = Instant::now();
        let told: Mutex<Option<Instant>> = Mutex::new(None);
        let progress = |step: String| {
            let mut told = told.lock().expect("the lock is never held across a panic");
            if told.is_none() {
                self.event("Pulling", format!("Pulling image \"{name}\""));
            }
            if told.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY) {
                *told = Some(Instant::now());
                let text = format!("image {name}: {step}");
                let _ = self.updates.try_send((self.container.name.clone(), Update::Progress(text)));
            }
        };
        let found = self.context.images.ensure(name, policy, &progress).await;
        let pulled = told.lock().expect("the lock is never held across a panic").is_some();
        match found {
            Ok(image) if pulled => {
                let seconds = begun.elapsed().as_secs_f32();
                self.event("Pulled", format!("Successfully pulled image \"{name}\" in {seconds:.1}s"));
                Ok(image)
            }
            Ok(image) => {
                self.event("Pulled", format!("Container image \"{name}\" already present on machine"));
                Ok(image)
            }
            Err(error) => {
                let message = error.to_string();
                let (reason, event, told) = match &error {
                    ImageError::Reference(_) => {
                        let said = format!("Failed to apply default image tag \"{name}\": {message}");
                        ("InvalidImageName", "InspectFailed", said)
                    }
                    ImageError::NotPresent(_) => ("ErrImageNeverPull", "ErrImageNeverPull", message.clone()),
                    _ => (PULL_FAILED, "Failed", format!("Failed to pull image \"{name}\": {message}")),
                };
                if reason == PULL_FAILED && !pulled {
                    self.event("Pulling", format!("Pulling image \"{name}\""));
                }
                self.warn(event, told);
                Err(Refusal { reason, message })
            }
        }
    }
}

impl Worker {
    /// Tells that a container waits for the next attempt to get its image.
    pub(super) fn back_off(&mut self, name: &str) {
        let Some(container) = self.container(name) else { return };
        let Some(observation) = self.observed.containers.get_mut(name) else { return };
        let image = observation.fetching.clone().or(container.image).unwrap_or_default();
        observation.back_off(&image);
        let field = ephemeral::field(&self.pod, name);
        let events = &self.context.events;
        events.normal(&*self.pod, Some(&field), "BackOff", format!("Back-off pulling image \"{image}\""));
        events.warning(&*self.pod, Some(&field), "Failed", "Error: ImagePullBackOff".to_owned());
    }
}
