//! What the node knows about a Pod that it runs: the input of every decision.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::ephemeral;
use super::prober::Before;
use super::promise::{Promise, Resize};

/// The first wait before a container is started again; each further one is twice as long.
const BACKOFF_FIRST: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_secs(300);
/// How long a failed attempt to get an image is shown as such, before the wait for the next one is.
const PULL_FAILURE_SHOWN: SignedDuration = SignedDuration::from_secs(3);
/// Why a container waits whose image could not be had just now, and why it waits later.
pub(crate) const PULL_FAILED: &str = "ErrImagePull";
const PULL_BACKOFF: &str = "ImagePullBackOff";
/// A container that ran this long has earned a fresh start.
const BACKOFF_RESET: SignedDuration = SignedDuration::from_secs(600);
/// The exit code of a container that the node lost with its own process.
const EXIT_LOST: i32 = 137;

/// What the node knows about a Pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observed {
    /// Whether address and volumes are there.
    pub(crate) prepared: bool,
    /// Why they are not, if that is known.
    pub(crate) obstacle: Option<String>,
    /// Why the Pod as a whole has failed: reason and message.
    pub(crate) failed: Option<(String, String)>,
    /// Its containers by name, init containers included.
    pub(crate) containers: BTreeMap<String, Observation>,
    /// What they were promised, and what those that run are held to.
    pub(crate) promised: Promise,
    pub(crate) held: Promise,
    pub(crate) resize: Resize,
}

/// What the node knows about a container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(crate) struct Observation {
    pub(crate) state: State,
    /// How it ended the last time.
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: i32,
    /// Ends since it last ran long enough.
    pub(crate) crashes: u32,
    /// Failed attempts to start it since it last ran, and why the last one failed.
    pub(crate) refusals: u32,
    pub(crate) refusal: Option<(String, String)>,
    /// When it failed.
    pub(crate) refused: Option<Timestamp>,
    /// Whether the readiness probe is satisfied.
    pub(crate) ready: bool,
    /// Whether the startup probe is satisfied.
    pub(crate) started: bool,
    pub(crate) image_id: String,
    /// Whether it is ended to be started again with other resources.
    pub(crate) resizing: bool,
    /// The image of a volume that it needs before it can start.
    pub(crate) fetching: Option<String>,
}

/// Where a container is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Not started; it may be tried again at a time.
    Waiting { reason: String, message: String, retry: Option<Timestamp> },
    /// A task is starting it.
    Starting { message: String },
    /// Its program runs.
    Running { since: Timestamp },
    /// Its program was told to end.
    Stopping { since: Timestamp },
    /// Its program has ended.
    Ended(Ended),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            state: State::Waiting { reason: "ContainerCreating".to_owned(), message: String::new(), retry: None },
            last: None,
            restarts: 0,
            crashes: 0,
            refusals: 0,
            refusal: None,
            refused: None,
            ready: false,
            started: false,
            image_id: String::new(),
            resizing: false,
            fetching: None,
        }
    }
}

impl Observation {
    /// Records that run `number` goes on since an earlier life of the node; what probes had found out then.
    pub(crate) fn resume(&mut self, number: i32, since: Timestamp, name: &str, status: Option<&PodStatus>) -> Before {
        let status = status.and_then(|status| find(status, name)).filter(|status| status.restart_count == number);
        let before = status.map_or_else(Before::default, |status| Before {
            started: status.started == Some(true),
            ready: status.ready,
        });
        (self.ready, self.started) = (before.ready, before.started);
        self.restarts = number;
        self.state = State::Running { since };
        before
    }

    /// True while a task is at work on it.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state, State::Starting { .. } | State::Running { .. } | State::Stopping { .. })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Records the end of a run.
    pub(crate) fn end(&mut self, ended: Ended) {
        let ran = ended.started.map_or(SignedDuration::ZERO, |started| ended.finished.duration_since(started));
        self.crashes = match self.resizing {
            true => self.crashes,
            false if ran >= BACKOFF_RESET => 1,
            false => self.crashes.saturating_add(1),
        };
        (self.ready, self.started) = (false, false);
        self.state = State::Ended(ended);
    }

    /// Records that it could not be started.
    pub(crate) fn refuse(&mut self, reason: String, message: String, now: Timestamp) {
        self.refusals = self.refusals.saturating_add(1);
        self.refused = Some(now);
        let retry = Some(now + delay(self.refusals));
        self.refusal = Some((reason.clone(), message.clone()));
        self.state = State::Waiting { reason, message, retry };
    }

    /// When it is to be shown as waiting for the next attempt to get its image.
    pub(crate) fn back_off_at(&self) -> Option<Timestamp> {
        let failed = matches!(&self.state, State::Waiting { reason, .. } if reason == PULL_FAILED);
        self.refused.filter(|_| failed).map(|refused| refused + PULL_FAILURE_SHOWN)
    }

    /// Shows it as waiting for the next attempt to get its image.
    pub(crate) fn back_off(&mut self, image: &str) {
        if let State::Waiting { reason, message, .. } = &mut self.state {
            *message = format!("Back-off pulling image \"{image}\": {reason}: {message}");
            *reason = PULL_BACKOFF.to_owned();
            self.refusal = Some((reason.clone(), message.clone()));
        }
    }

    /// When it may be started again after its end: at once the first time, then after longer and longer waits.
    pub(crate) fn restart_at(&self) -> Option<Timestamp> {
        let ended = self.ended()?;
        Some(ended.finished + self.restart_delay())
    }

    /// The wait before the next start after an end.
    pub(crate) fn restart_delay(&self) -> SignedDuration {
        match self.crashes {
            _ if self.resizing => SignedDuration::ZERO,
            0 | 1 => SignedDuration::ZERO,
            crashes => delay(crashes - 1),
        }
    }
}

/// The n-th wait, from 1.
fn delay(attempt: u32) -> SignedDuration {
    let doubled = BACKOFF_FIRST.checked_mul(1_i32.checked_shl(attempt.saturating_sub(1)).unwrap_or(i32::MAX).max(1));
    doubled.unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX)
}

impl Observed {
    /// What is known at the start: nothing runs, whatever the Pod's status says of an earlier life of this node.
    pub(crate) fn from_pod(pod: &Pod, now: Timestamp) -> Self {
        let spec = pod.spec.as_ref();
        let lasting = spec.into_iter().flat_map(|s| s.init_containers.iter().flatten().chain(&s.containers));
        let names = lasting.cloned().chain(ephemeral::containers(pod));
        let status = pod.status.as_ref();
        let containers = names.map(|container| {
            let known = status.and_then(|status| find(status, &container.name));
            (container.name.clone(), known.map_or_else(Observation::default, |known| recall(known, now)))
        });
        let promised = Promise::recalled(pod);
        Self { containers: containers.collect(), failed: status.and_then(failure), promised, ..Self::default() }
    }

    /// A container's observation; one that is not in the Pod has the initial one.
    pub(crate) fn container(&self, name: &str) -> Observation {
        self.containers.get(name).cloned().unwrap_or_default()
    }
}

/// Why a Pod has failed as a whole: it stays so.
fn failure(status: &PodStatus) -> Option<(String, String)> {
    let reason = status.reason.clone().filter(|_| status.phase.as_deref() == Some("Failed"))?;
    Some((reason, status.message.clone().unwrap_or_default()))
}

fn find<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    let ephemeral = status.ephemeral_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten()).chain(ephemeral).find(|status| status.name == name)
}

fn recall(status: &ContainerStatus, now: Timestamp) -> Observation {
    let mut observation = Observation {
        restarts: status.restart_count,
        image_id: status.image_id.clone(),
        last: status.last_state.as_ref().and_then(terminated),
        ..Observation::default()
    };
    let Some(state) = &status.state else { return observation };
    if let Some(running) = &state.running {
        observation.state = State::Ended(Ended {
            code: EXIT_LOST,
            reason: "ContainerStatusUnknown".to_owned(),
            message: Some("the node stopped while the container ran".to_owned()),
            started: running.started_at.as_ref().map(|time| time.0),
            finished: now,
        });
    } else if let Some(ended) = terminated(state) {
        observation.state = State::Ended(ended);
    }
    observation
}

fn terminated(state: &ContainerState) -> Option<Ended> {
    let terminated = state.terminated.as_ref()?;
    Some(Ended {
        code: terminated.exit_code,
        reason: terminated.reason.clone().unwrap_or_default(),
        message: terminated.message.clone(),
        started: terminated.started_at.as_ref().map(|time| time.0),
        finished: terminated.finished_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes_and_begin_anew_after_a_long_run() {
        let mut observation = Observation::default();
        let start = Timestamp::UNIX_EPOCH;
        let ended = |ran: i64| Ended {
            code: 1,
            reason: "Error".to_owned(),
            message: None,
            started: Some(start),
            finished: start + SignedDuration::from_secs(ran),
        };
        let mut waits = Vec::new();
        for _ in 0..8 {
            observation.end(ended(1));
            waits.push(observation.restart_delay().as_secs());
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        observation.end(ended(601));
        assert_eq!(observation.restart_delay().as_secs(), 0);
    }

    #[test]
    fn a_failed_pull_becomes_a_wait_for_the_next() {
        let mut observation = Observation::default();
        let start = Timestamp::UNIX_EPOCH;
        assert_eq!(observation.back_off_at(), None);
        observation.refuse(PULL_FAILED.to_owned(), "no such".to_owned(), start);
        assert_eq!(observation.back_off_at(), Some(start + SignedDuration::from_secs(3)));
        observation.back_off("i:1");
        assert_eq!(observation.back_off_at(), None);
        let message = "Back-off pulling image \"i:1\": ErrImagePull: no such".to_owned();
        let retry = Some(start + SignedDuration::from_secs(10));
        assert_eq!(observation.state, State::Waiting { reason: PULL_BACKOFF.to_owned(), message, retry });
    }

    #[test]
    fn a_container_that_is_found_again_is_as_ready_as_it_was() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "spec": {"containers": [{"name": "c"}]},
            "status": {"containerStatuses": [{"name": "c", "restartCount": 3, "image": "", "imageID": "i", "ready": true,
                "started": true, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}
        }))
        .unwrap();
        let resumed = |number: i32| {
            let mut observation = Observed::from_pod(&pod, Timestamp::UNIX_EPOCH).container("c");
            let before = observation.resume(number, Timestamp::UNIX_EPOCH, "c", pod.status.as_ref());
            (observation.restarts, observation.ready, observation.is_active(), before.started)
        };
        assert_eq!(resumed(3), (3, true, true, true));
        assert_eq!(resumed(4), (4, false, true, false), "of this run the status does not tell yet");
    }

    #[test]
    fn an_evicted_pod_stays_evicted() {
        let pod = |phase: &str| -> Pod {
            let status = serde_json::json!({"phase": phase, "reason": "Evicted", "message": "too much"});
            serde_json::from_value(serde_json::json!({"spec": {"containers": []}, "status": status})).unwrap()
        };
        let failed = |phase: &str| Observed::from_pod(&pod(phase), Timestamp::UNIX_EPOCH).failed;
        assert_eq!(failed("Failed"), Some(("Evicted".to_owned(), "too much".to_owned())));
        assert_eq!(failed("Running"), None);
    }

    #[test]
    fn a_container_that_ran_when_the_node_died_has_ended() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "spec": {"containers": [{"name": "c"}]},
            "status": {"containerStatuses": [{"name": "c", "restartCount": 3, "image": "", "imageID": "i", "ready": true,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}
        }))
        .unwrap();
        let observation = Observed::from_pod(&pod, Timestamp::UNIX_EPOCH).container("c");
        assert_eq!(observation.restarts, 3);
        assert_eq!(observation.ended().unwrap().code, EXIT_LOST);
        assert!(!observation.ready);
    }
}
