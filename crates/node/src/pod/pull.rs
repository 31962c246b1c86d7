//! Gets the image of a container, and tells how that goes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::container::{Job, Refusal, Update};
use crate::image::{Image, ImageError, PullPolicy};

/// Progress of an image is reported no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

impl Job {
    /// The image of the container, which may have to be made first.
    pub(super) async fn image(&self) -> Result<Image, Refusal> {
        let name = self.container.image.clone().unwrap_or_default();
        let policy = match self.container.image_pull_policy.as_deref() {
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
        let found = self.context.images.ensure(&name, policy, &progress).await;
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
                let reason = match &error {
                    ImageError::Reference(_) => "InvalidImageName",
                    ImageError::NotPresent(_) => "ErrImageNeverPull",
                    _ => "ErrImagePull",
                };
                Err(Refusal { reason, message: error.to_string() })
            }
        }
    }
}
