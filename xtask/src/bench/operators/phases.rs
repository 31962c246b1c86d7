//! One contender with one number of resources, from nothing to drift.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_kubernetes::{ControlPlane, User, kubeconfig};

use super::contenders::Contender;
use super::relay::Relay;
use super::requests::{Counts, Requests, USER};
use super::servers::{Built, Server};
use crate::bench::load::{Credentials, Load};
use crate::bench::process::{Process, load_average};
use crate::bench::rounds::number;
use crate::workspace::root;

/// Resources that are changed, or disturbed, after the cold start.
const CHANGES_MAX: usize = 200;
/// When a further resource is made after a restart.
const ANOTHER_AFTER: Duration = Duration::from_secs(1);

/// What one phase took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cost {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    pub(super) peak_mb: f64,
    pub(super) wire_mb: f64,
    pub(super) requests: Counts,
    /// From a change to settled, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// What a contender took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) server: Server,
    pub(super) name: String,
    pub(super) text: String,
    /// The load of the machine at the end.
    pub(super) load: String,
    pub(super) size: usize,
    pub(super) cold: Cost,
    pub(super) update: Cost,
    pub(super) drift: Cost,
    /// Restarted with everything in place; its times are those of a resource made a second later.
    pub(super) restart: Cost,
}

/// Where a contender works: an API server with nothing but the resources, and a relay that counts.
struct Stage {
    load: Load,
    requests: Requests,
    relay: Relay,
    kubeconfig: std::path::PathBuf,
    log: std::path::PathBuf,
    _plane: ControlPlane,
}

/// A contender that works.
struct Running<'a> {
    stage: &'a Stage,
    process: Process,
    begin: Instant,
    before: (Counts, u64, f64),
}

/// Measures one contender.
pub(super) fn measure(server: &Built, load: &Path, contender: &Contender, size: usize) -> Result<Measured> {
    let stage = Stage::set(server, load, contender.name)?;
    let (count, changes) = (size.to_string(), size.min(CHANGES_MAX).to_string());
    stage.step("create", &count)?;
    let mut running = Running::start(&stage, contender)?;
    stage.step("settle", &count).with_context(|| format!("{} is not done", contender.name))?;
    let wall_s = running.begin.elapsed().as_secs_f64();
    stage.requests.rest()?;
    let cold = Cost { wall_s, ..running.cost()? };
    let times = stage.step("update", &changes)?;
    stage.requests.rest()?;
    let update = running.cost()?.with(&times)?;
    let times = stage.step("drift", &changes)?;
    stage.requests.rest()?;
    let drift = running.cost()?.with(&times)?;
    drop(running);
    let mut running = Running::start(&stage, contender)?;
    std::thread::sleep(ANOTHER_AFTER);
    let another = number(&stage.step("another", "1")?, "another_ms")?;
    stage.requests.rest()?;
    let restart = Cost { p50_ms: another, p99_ms: another, ..running.cost()? };
    let (name, text) = (contender.name.to_owned(), contender.text.to_owned());
    let load = load_average().split(' ').next().unwrap_or_default().to_owned();
    Ok(Measured { server: server.server, name, text, load, size, cold, update, drift, restart })
}

impl Stage {
    fn set(server: &Built, load: &Path, name: &str) -> Result<Self> {
        let folder = crate::workspace::target().join("bench/operators").join(name);
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder)?;
        let (requests, flags) = Requests::flags(&folder)?;
        let plane = server.start(&folder, flags)?;
        plane.keys().user(User { file: USER, name: USER, group: Some("system:masters") })?;
        let relay = Relay::start(plane.place().port)?;
        let own = folder.join("contender.kubeconfig");
        fs::write(&own, kubeconfig(&format!("https://{}", relay.address), plane.keys().folder(), USER))?;
        define(&server.kubectl, &plane.kubeconfig())?;
        let credentials = Credentials { server: plane.place().server(), pki: plane.keys().folder().to_owned() };
        let log = folder.join("contender.log");
        Ok(Self { load: Load::new(load, credentials), requests, relay, kubeconfig: own, log, _plane: plane })
    }

    fn step(&self, step: &str, count: &str) -> Result<Value> {
        self.load.run(&["widgets", "--step", step, "--count", count])
    }
}

/// Serves the kind of the resources.
fn define(kubectl: &Path, kubeconfig: &Path) -> Result<()> {
    let definition = root().join("bench/peers/crd.yaml");
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd/widgets.bench.example.com"];
    for words in [&["apply", "-f", &definition.display().to_string()][..], &wait] {
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig).args(words).stdin(Stdio::null()).stdout(Stdio::null());
        if !command.status()?.success() {
            bail!("the kind of the resources is not served");
        }
    }
    Ok(())
}

impl<'a> Running<'a> {
    fn start(stage: &'a Stage, contender: &Contender) -> Result<Self> {
        let before = (stage.requests.count()?, stage.relay.bytes(), 0.0);
        let mut command = contender.command(&stage.kubeconfig);
        let log = fs::OpenOptions::new().create(true).append(true).open(&stage.log)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = Process::start(&mut command)?;
        Ok(Self { stage, process, begin: Instant::now(), before })
    }

    /// What was spent since the last time that this was asked.
    fn cost(&mut self) -> Result<Cost> {
        let now = (self.stage.requests.count()?, self.stage.relay.bytes(), self.process.cpu()?);
        let cost = Cost {
            cpu_s: now.2 - self.before.2,
            wire_mb: (now.1 - self.before.1) as f64 / 1e6,
            requests: now.0.since(&self.before.0),
            peak_mb: self.process.peak()? / 1e6,
            ..Cost::default()
        };
        self.before = now;
        Ok(cost)
    }
}

impl Cost {
    fn with(self, times: &Value) -> Result<Self> {
        Ok(Self { p50_ms: number(times, "p50_ms")?, p99_ms: number(times, "p99_ms")?, ..self })
    }
}
