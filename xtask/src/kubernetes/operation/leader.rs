//! The replica that leads: who it is, and how another takes over.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::super::kubectl::Kubectl;
use super::installation::{NAME, NAMESPACE};

/// How often those who do not lead look at the lease, and what asking for it takes on a busy machine.
const LOOK: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

/// The replica that leads.
pub(super) struct Leader<'a> {
    kubectl: &'a Kubectl,
    holder: String,
    lease: Duration,
}

impl<'a> Leader<'a> {
    /// Who holds the lease.
    pub(super) fn find(kubectl: &'a Kubectl) -> Result<Self> {
        let is_held =
            |lease: &serde_json::Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|it| !it.is_empty());
        let lease = kubectl.get_until(&["--namespace", NAMESPACE, "lease", NAME], "a leader", is_held)?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let seconds = lease["spec"]["leaseDurationSeconds"].as_u64().context("a lease says how long it holds")?;
        Ok(Self { kubectl, holder, lease: Duration::from_secs(seconds) })
    }

    /// Kills its process, so that it cannot give the lease back; how long it took until another led.
    pub(super) fn kill(self) -> Result<Duration> {
        let process = self.process()?;
        let begin = Instant::now();
        ensure!(Command::new("kill").args(["-9", &process]).status()?.success(), "the leader was not killed");
        let took = self.successor(begin)?;
        ensure!(took <= self.lease + LOOK, "{took:?} without a leader, though the lease is {:?}", self.lease);
        Ok(took)
    }

    /// Deletes its Pod, which gives the lease back; how long it took until another led.
    pub(super) fn end(self) -> Result<Duration> {
        let begin = Instant::now();
        self.kubectl.run(&["--namespace", NAMESPACE, "delete", "pod", "--wait=false", self.pod()])?;
        let took = self.successor(begin)?;
        ensure!(took <= LOOK, "{took:?} without a leader, though the lease was given back");
        Ok(took)
    }

    fn pod(&self) -> &str {
        self.holder.rsplit_once('_').map_or(&self.holder, |(pod, _)| pod)
    }

    fn successor(&self, begin: Instant) -> Result<Duration> {
        loop {
            let lease = self.kubectl.get(&["--namespace", NAMESPACE, "lease", NAME])?;
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let took = begin.elapsed();
            if !holder.is_empty() && holder != self.holder {
                return Ok(took);
            }
            if took > self.lease * 3 {
                bail!("nobody took over from {}", self.holder);
            }
            std::thread::sleep(POLL);
        }
    }

    /// The number of its process on this machine: the program whose host name is that of the Pod.
    fn process(&self) -> Result<String> {
        let wanted = format!("HOSTNAME={}", self.pod());
        for entry in fs::read_dir("/proc")? {
            let process = entry?.path();
            let read = |name: &str| fs::read(process.join(name)).unwrap_or_default();
            let is_operator =
                String::from_utf8_lossy(&read("cmdline")).split('\0').next() == Some("/usr/bin/memcached-operator");
            let is_of_pod = read("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
            if is_operator && is_of_pod {
                return Ok(process.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        bail!("no process of {} is on this machine", self.pod())
    }
}
