//! Probes of a running container: startup first, then liveness and readiness side by side.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use tokio::sync::mpsc;

use super::inside::Inside;

/// What a probe found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The startup probe is satisfied, or there is none.
    Started,
    /// The readiness probe changed its mind.
    Ready(bool),
    /// A probe failed; for people.
    Unhealthy { probe: &'static str, why: String },
    /// The container must be ended.
    Dead { probe: &'static str },
}

/// What probes found out before, in an earlier life of the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) started: bool,
    pub(crate) ready: bool,
}

/// Counts the results of a probe against its thresholds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tally {
    success_threshold: u32,
    failure_threshold: u32,
    successes: u32,
    failures: u32,
}

impl Tally {
    fn new(probe: &Probe) -> Self {
        let threshold = |value: Option<i32>, default: u32| {
            value.and_then(|v| u32::try_from(v).ok()).filter(|v| *v > 0).unwrap_or(default)
        };
        Self {
            success_threshold: threshold(probe.success_threshold, 1),
            failure_threshold: threshold(probe.failure_threshold, 3),
            successes: 0,
            failures: 0,
        }
    }

    /// Counts a result; says what it means once a threshold is reached.
    fn count(&mut self, good: bool) -> Option<bool> {
        if good {
            (self.successes, self.failures) = (self.successes.saturating_add(1), 0);
            (self.successes >= self.success_threshold).then_some(true)
        } else {
            (self.successes, self.failures) = (0, self.failures.saturating_add(1));
            (self.failures >= self.failure_threshold).then_some(false)
        }
    }
}

/// Probes a container until it is aborted or found dead.
pub(crate) async fn watch(inside: Inside, before: Before, findings: mpsc::Sender<Finding>) {
    let container = &inside.container;
    if let Some(probe) = &container.startup_probe
        && !before.started
        && !started(probe, &inside, &findings).await
    {
        return;
    }
    if findings.send(Finding::Started).await.is_err() {
        return;
    }
    let liveness = async {
        if let Some(probe) = &container.liveness_probe {
            live(probe, &inside, &findings).await;
        }
    };
    let readiness = async {
        match &container.readiness_probe {
            Some(probe) => ready(probe, &inside, before.ready, &findings).await,
            None => drop(findings.send(Finding::Ready(true)).await),
        }
    };
    tokio::join!(liveness, readiness);
}

async fn started(probe: &Probe, inside: &Inside, findings: &mpsc::Sender<Finding>) -> bool {
    let mut rounds = Rounds::new(probe, "Startup");
    loop {
        match rounds.next(inside, findings).await {
            Some(true) => return true,
            Some(false) => {
                let _ = findings.send(Finding::Dead { probe: "startup" }).await;
                return false;
            }
            None => {}
        }
    }
}

async fn live(probe: &Probe, inside: &Inside, findings: &mpsc::Sender<Finding>) {
    let mut rounds = Rounds::new(probe, "Liveness");
    while rounds.next(inside, findings).await != Some(false) {}
    let _ = findings.send(Finding::Dead { probe: "liveness" }).await;
}

async fn ready(probe: &Probe, inside: &Inside, before: bool, findings: &mpsc::Sender<Finding>) {
    let mut rounds = Rounds::new(probe, "Readiness");
    let mut now = before;
    loop {
        if let Some(ready) = rounds.next(inside, findings).await
            && ready != now
        {
            now = ready;
            if findings.send(Finding::Ready(ready)).await.is_err() {
                return;
            }
        }
    }
}

/// The rounds of one probe.
struct Rounds<'a> {
    probe: &'a Probe,
    name: &'static str,
    tally: Tally,
    wait: Duration,
}

impl<'a> Rounds<'a> {
    fn new(probe: &'a Probe, name: &'static str) -> Self {
        Self { probe, name, tally: Tally::new(probe), wait: seconds(probe.initial_delay_seconds, 0) }
    }

    async fn next(&mut self, inside: &Inside, findings: &mpsc::Sender<Finding>) -> Option<bool> {
        tokio::time::sleep(self.wait).await;
        self.wait = seconds(self.probe.period_seconds, 10).max(Duration::from_secs(1));
        let result = check(self.probe, inside).await;
        if let Err(why) = &result {
            let unhealthy = Finding::Unhealthy { probe: self.name, why: why.clone() };
            let _ = findings.send(unhealthy).await;
        }
        self.tally.count(result.is_ok())
    }
}

async fn check(probe: &Probe, inside: &Inside) -> Result<(), String> {
    let limit = seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1));
    if let Some(exec) = &probe.exec {
        return inside.exec(exec.command.as_deref().unwrap_or_default(), limit).await;
    }
    if let Some(http) = &probe.http_get {
        return inside.http(http, limit).await;
    }
    if let Some(tcp) = &probe.tcp_socket {
        return inside.tcp(tcp.host.as_deref(), &tcp.port, limit).await;
    }
    if let Some(grpc) = &probe.grpc {
        return inside.grpc(grpc.port, grpc.service.as_deref().unwrap_or_default(), limit).await;
    }
    Ok(())
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_decide() {
        let probe = Probe { success_threshold: Some(2), failure_threshold: Some(3), ..Probe::default() };
        let mut tally = Tally::new(&probe);
        let verdicts: Vec<Option<bool>> =
            [true, true, false, false, true, false, false, false, false].map(|good| tally.count(good)).into();
        let expect = [None, Some(true), None, None, None, None, None, Some(false), Some(false)];
        assert_eq!(verdicts, expect);
    }
}
