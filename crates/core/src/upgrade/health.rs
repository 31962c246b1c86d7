//! How a revision does that is being tried.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use crate::pods::Pods;

/// What containers wait for that is nobody's fault.
const ORDINARY: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// What a container waits for that ended, and is started again.
const CRASHED: &str = "CrashLoopBackOff";

/// How a revision does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing speaks against it.
    Healthy,
    /// It is on its way: what is missing, for people.
    Progressing(String),
    /// A member does not start. After three attempts the revision has failed; where nobody counts them, after half a minute.
    Failing {
        /// Who.
        member: String,
        /// How often it was tried; 0 if nobody counts.
        attempts: u32,
        /// What happens, for people.
        why: String,
    },
}

impl Health {
    /// What Pods say: each is started by its node until it stays, and those starts are counted. How often an image that cannot be
    /// had was asked for nobody counts.
    pub fn of_pods(pods: &Pods) -> Self {
        let worst = pods.iter().filter_map(failing).max_by_key(|(attempts, ..)| *attempts);
        match worst {
            Some((attempts, member, why)) => Self::Failing { member, attempts, why },
            None => Self::Healthy,
        }
    }

    /// Why it is not healthy, for people.
    pub fn objection(&self) -> Option<String> {
        match self {
            Self::Healthy => None,
            Self::Progressing(why) => Some(why.clone()),
            Self::Failing { member, attempts: 0 | 1, why } => Some(format!("{member} does not start: {why}")),
            Self::Failing { member, attempts, why } => {
                Some(format!("{member} failed to start {attempts} times: {why}"))
            }
        }
    }
}

/// How often the Pod was started in vain, its name, and why.
fn failing(pod: &Pod) -> Option<(u32, String, String)> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    let worst = containers.filter_map(attempts).max_by_key(|(attempts, _)| *attempts);
    let (attempts, why) = worst?;
    Some((attempts, pod.metadata.name.clone().unwrap_or_default(), why))
}

fn attempts(container: &ContainerStatus) -> Option<(u32, String)> {
    let state = container.state.clone().unwrap_or_default();
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let restarts = u32::try_from(container.restart_count).unwrap_or(0);
    if let Some(ended) = state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
        return Some((restarts + 1, of_end(ended)));
    }
    let waiting = state.waiting.unwrap_or_default();
    match waiting.reason.as_deref() {
        Some(CRASHED) => Some((restarts + 1, last.map_or_else(|| CRASHED.to_owned(), of_end))),
        Some(reason) if !ORDINARY.contains(&reason) => {
            let said = waiting.message.filter(|message| !message.is_empty());
            Some((restarts, format!("{reason}: {}", said.unwrap_or_else(|| format!("image {}", container.image)))))
        }
        // It runs, and is not ready: the last time it came no further either.
        _ if restarts > 0 && !container.ready => Some((restarts, last.map_or_else(|| "it ended".to_owned(), of_end))),
        _ => None,
    }
}

fn of_end(ended: &ContainerStateTerminated) -> String {
    let said = ended.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    let what = match ended.signal.filter(|signal| *signal != 0) {
        Some(signal) => format!("it was ended by signal {signal}"),
        None => format!("it ended with exit code {}", ended.exit_code),
    };
    said.map_or_else(|| what.clone(), |said| format!("{what}: {said}"))
}
