//! What the Pods of this node use, as rates between looks at the kernel's figures.

mod looks;
mod machine;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use windlass_schema::kubelet::{
    ContainerStats, CpuStats, MemoryStats, NodeStats, PodReference, PodStats, Stats as Figures, Summary,
};

use crate::cgroup::Group;
use crate::pod::LiveContainers;
use crate::usage;
use looks::{Look, Looks, Rate};

/// How often everything is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// One run of a container: the uid of its Pod, its name, its first process.
type Run = (String, String, i32);

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Stats(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    machine: Looks,
    containers: HashMap<Run, Looks>,
}

impl Stats {
    /// Looks at everything again and again until told to stop.
    pub(crate) async fn run(self: Arc<Self>, live: LiveContainers, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let running = live.all().into_iter().map(|((uid, name), live)| {
                let inside = &live.inside;
                ((uid, name, inside.init), inside.group.clone())
            });
            let (stats, running) = (Arc::clone(&self), running.collect());
            // The figures are files, and a machine can have thousands of processes.
            if let Err(error) = tokio::task::spawn_blocking(move || stats.look(running)).await {
                tracing::warn!(%error, "a look at the use of containers failed");
            }
        }
    }

    fn look(&self, running: Vec<(Run, Option<Group>)>) {
        let machine = machine::look();
        let looks: Vec<(Run, Look)> = running
            .into_iter()
            .filter_map(|(run, group)| {
                let usage = usage::of(run.2, group.as_ref());
                let look = Look { at: Instant::now(), cpu: usage.cpu, memory: usage.memory };
                (usage.processes > 0).then_some((run, look))
            })
            .collect();
        let alive: HashSet<Run> = looks.iter().map(|(run, _)| run.clone()).collect();
        let mut seen = self.lock();
        seen.containers.retain(|run, _| alive.contains(run));
        for (run, look) in looks {
            seen.containers.entry(run).or_default().add(look);
        }
        if let Some(look) = machine {
            seen.machine.add(look);
        }
    }

    /// What is known of the node called `name` and of `pods`, which are on it.
    pub(crate) fn summary(&self, name: &str, pods: &[Arc<Pod>]) -> Summary {
        let seen = self.lock();
        let now = Moment { instant: Instant::now(), time: Timestamp::now() };
        let node = seen.machine.rate().map(|rate| now.figures(&rate));
        let pods = pods.iter().filter_map(|pod| seen.pod(pod, &now)).collect();
        Summary { node: NodeStats { node_name: name.to_owned(), stats: node }, pods }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// What a Pod uses; `None` until each of its containers that run was looked at twice.
    fn pod(&self, pod: &Pod, now: &Moment) -> Option<PodStats> {
        let uid = pod.uid()?;
        let own = self.containers.iter().filter(|((owner, _, _), _)| *owner == uid);
        let stats = own.map(|((_, name, _), looks)| {
            looks.rate().map(|rate| ContainerStats { name: name.clone(), stats: now.figures(&rate) })
        });
        let mut containers: Vec<ContainerStats> = stats.collect::<Option<_>>()?;
        containers.sort_by(|one, other| one.name.cmp(&other.name));
        let pod_ref = PodReference { name: pod.name_any(), namespace: pod.namespace().unwrap_or_default(), uid };
        (!containers.is_empty()).then_some(PodStats { pod_ref, containers })
    }
}

/// The same moment on the clock of looks and on that of people.
struct Moment {
    instant: Instant,
    time: Timestamp,
}

impl Moment {
    fn figures(&self, rate: &Rate) -> Figures {
        let ago = SignedDuration::try_from(self.instant.saturating_duration_since(rate.at)).unwrap_or_default();
        let time = self.time.checked_sub(ago).unwrap_or(self.time);
        let window_nanoseconds = u64::try_from(rate.window.as_nanos()).unwrap_or(u64::MAX);
        Figures {
            cpu: CpuStats { time, usage_nano_cores: rate.nano_cores, window_nanoseconds },
            memory: MemoryStats { time, working_set_bytes: rate.memory },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_told_of_after_two_looks_at_all_of_it() {
        let pod: Arc<Pod> =
            Arc::new(serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}})).unwrap());
        let own = i32::try_from(std::process::id()).unwrap();
        let run = |name: &str| (("u".to_owned(), name.to_owned(), own), None);
        let stats = Stats::default();
        let names = || {
            let pods = stats.summary("node", &[Arc::clone(&pod)]).pods;
            pods.iter().flat_map(|pod| pod.containers.iter().map(|it| it.name.clone())).collect::<Vec<_>>()
        };
        stats.look(vec![run("a")]);
        assert!(names().is_empty(), "one look has no rate");
        std::thread::sleep(looks::WINDOW_MIN);
        stats.look(vec![run("a"), run("b")]);
        assert!(names().is_empty(), "b was seen once");
        std::thread::sleep(looks::WINDOW_MIN);
        stats.look(vec![run("a"), run("b")]);
        assert_eq!(names(), ["a", "b"]);
        let told = stats.summary("node", &[Arc::clone(&pod)]);
        assert!(told.pods[0].containers[0].stats.memory.working_set_bytes > 0);
        assert!(told.node.stats.unwrap().memory.working_set_bytes > 0);
        stats.look(vec![]);
        assert!(names().is_empty(), "nothing runs any more");
    }
}
