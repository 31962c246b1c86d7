//! One run of a container, from its image to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::bounds::Bounds;
use super::console::Console;
use super::downward::Addresses;
use super::environment::{Surroundings, environment};
use super::ephemeral;
use super::grace::GRACE_DEFAULT;
use super::inside::Inside;
use super::live::{Entry, Live};
use super::observed::Ended;
use super::prober::{self, Before, Finding};
use super::refusal::Refusal;
use super::signal::signal_number;
use super::sources::Sources;
use super::spec::{Ingredients, container_spec};
use super::survival::Survivor;
use super::watchdog::{Excess, Together, Watchdog};
use crate::chaos::Ailment;
use crate::context::Context;
use crate::image::{Hold, Image};
use crate::log::{self, Log};
use crate::sandbox::{ContainerSpec, Origin, Report, Request, Running, Source};
use crate::tree;

const FINDINGS_MAX: usize = 16;

/// What a container's task tells its Pod's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// Something goes on before the start.
    Progress(String),
    /// The image of a volume is needed.
    Fetching(String),
    /// It could not be started.
    Refused { reason: &'static str, message: String },
    /// It was told to end before it started.
    Cancelled,
    /// Its program runs.
    Started { at: Timestamp, image_id: String },
    /// A probe found something out.
    Finding(Finding),
    /// It is held to other limits, or why not.
    Rebound { resources: ResourceRequirements, outcome: Result<(), String> },
    /// Its program has ended.
    Ended(Ended),
    /// The whole Pod stores more than it may.
    Evicted(String),
}

/// Everything that one run needs.
pub(crate) struct Job {
    pub(crate) context: Arc<Context>,
    pub(crate) pod: Arc<Pod>,
    pub(crate) container: Container,
    pub(crate) number: i32,
    pub(crate) addresses: Addresses,
    pub(crate) sources: Sources,
    pub(crate) volumes: Arc<BTreeMap<String, PathBuf>>,
    pub(crate) updates: mpsc::Sender<(String, Update)>,
    /// Set to the grace period when the container is to end.
    pub(crate) stop: watch::Receiver<Option<Duration>>,
    /// What it may use, which may change.
    pub(crate) bounds: watch::Receiver<Bounds>,
    /// The container, if it runs already.
    pub(super) survivor: Option<Survivor>,
}

/// Runs the container once.
pub(crate) async fn run(mut job: Job) {
    let mut stop = job.stop.clone();
    let started = match job.survivor.take() {
        Some(survivor) => Some(job.go_on(survivor)),
        None => tokio::select! {
            started = job.start() => Some(started),
            () = async { drop(stop.wait_for(Option::is_some).await) } => None,
        },
    };
    match started {
        None => job.tell(Update::Cancelled).await,
        Some(Ok(run)) => run.tend(&mut job).await,
        Some(Err(refusal)) => {
            job.warn("Failed", format!("Error: {}", refusal.spoken()));
            job.tell(Update::Refused { reason: refusal.reason, message: refusal.message }).await;
        }
    }
    let removed = tokio::task::spawn_blocking(move || {
        job.unbound();
        tree::remove(&job.directory())
    });
    let removed = removed.await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "the writable layer of a container was not removed");
    }
}

impl Job {
    pub(super) async fn tell(&self, update: Update) {
        // A Pod whose task is gone needs no news.
        let _ = self.updates.send((self.container.name.clone(), update)).await;
    }

    pub(super) fn warn(&self, reason: &str, message: String) {
        self.context.events.warning(&*self.pod, Some(&self.field()), reason, message);
    }

    pub(super) fn event(&self, reason: &str, message: String) {
        self.context.events.normal(&*self.pod, Some(&self.field()), reason, message);
    }

    fn field(&self) -> String {
        ephemeral::field(&self.pod, &self.container.name)
    }

    pub(super) fn directory(&self) -> PathBuf {
        let pod = self.context.pod_directory(&self.pod.uid().unwrap_or_default());
        pod.join("containers").join(&self.container.name).join(self.number.to_string())
    }

    pub(super) fn host_network(&self) -> bool {
        self.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
    }

    async fn start(&self) -> Result<Run, Refusal> {
        let image = self.image().await?;
        // Until the container runs and holds it itself.
        let held = self.context.images.hold(&image.id);
        let _held = held.map_err(|error| Refusal { reason: "CreateContainerError", message: error.to_string() })?;
        let stop_signal = image.config.stop_signal.as_deref().and_then(signal_number).unwrap_or(libc::SIGTERM);
        let origin = Origin { image_id: image.id.clone(), stop_signal };
        let places = self.places().await?;
        let mut spec = self.spec(&image, &places)?;
        spec.keep = self.keep(&spec, &origin);
        spec.faults = self.ailment().now();
        self.bound(&mut spec)?;
        let label =
            format!("{}/{}/{}", self.pod.namespace().unwrap_or_default(), self.pod.name_any(), self.container.name);
        let container_error =
            |error: std::io::Error| Refusal { reason: "CreateContainerError", message: error.to_string() };
        let mut running = self.context.launcher.container(&label, &spec).await.map_err(container_error)?;
        self.event("Created", format!("Created container: {}", self.container.name));
        let log = self.log().map_err(container_error)?;
        let init = self.until_started(&mut running).await?;
        self.attend(running, &spec, (init, Timestamp::now(), origin), log).map_err(container_error)
    }

    /// What the container suffers.
    fn ailment(&self) -> Ailment {
        self.context.board.of(&self.pod.uid().unwrap_or_default(), &self.container.name)
    }

    /// The log of this run.
    pub(super) fn log(&self) -> std::io::Result<Log> {
        self.context.logs.begin(self.log_directory(), self.number)
    }

    /// Where the logs of the container are.
    pub(super) fn log_directory(&self) -> PathBuf {
        self.context.log_directory(&*self.pod).join(&self.container.name)
    }

    /// How long the program gets to end where nobody says.
    pub(super) fn grace(&self) -> Duration {
        let seconds = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(GRACE_DEFAULT, Duration::from_secs)
    }

    /// Takes charge of a container whose program runs: its first process, since when, and where it comes from.
    pub(super) fn attend(
        &self,
        mut running: Running,
        spec: &ContainerSpec,
        (init, started, origin): (i32, Timestamp, Origin),
        log: Log,
    ) -> std::io::Result<Run> {
        let path = log.path().to_owned();
        let (console, output) = self.console(&mut running, log)?;
        let inside = Inside {
            launcher: self.context.launcher.clone(),
            init,
            supervisor: running.supervisor(),
            process: spec.process.clone(),
            confined: spec.address,
            address: self.addresses.pod,
            network: spec.network.clone(),
            contained: spec.contained.clone(),
            group: spec.group.clone(),
            container: self.container.clone(),
            takes_faults: true,
            asks_of_files: spec.ask_of_files,
            ailment: self.ailment(),
        };
        let uid = self.pod.uid().unwrap_or_default();
        let live = Live { inside: inside.clone(), console: Arc::clone(&console) };
        let entry = self.context.live.enter(&uid, live);
        let held = self.hold(spec, &origin)?;
        Ok(Run {
            running,
            output,
            log: path,
            console,
            inside,
            entry,
            held,
            origin,
            started,
            before: None,
            excess: None,
        })
    }

    /// Keeps the images that the container runs from and has mounted.
    fn hold(&self, spec: &ContainerSpec, origin: &Origin) -> std::io::Result<Vec<Hold>> {
        let images = &self.context.images;
        let mounted = spec.mounts.iter().filter_map(|mount| match &mount.source {
            Source::Bind(path) | Source::Beneath { volume: path, .. } => images.id_at(path),
            Source::Memory(_) => None,
        });
        let ids = std::iter::once(origin.image_id.clone()).chain(mounted);
        ids.filter_map(|id| images.hold(&id).transpose()).collect()
    }

    /// Waits until the program runs; its first process as the host sees it.
    async fn until_started(&self, running: &mut Running) -> Result<i32, Refusal> {
        let refusal = |message: String| Refusal { reason: "StartError", message };
        loop {
            match running.next_report().await {
                Report::Started { init } => return Ok(init),
                Report::Failed(message) => {
                    running.gone().await;
                    return Err(refusal(message));
                }
                Report::Exited(code) => return Err(refusal(format!("exited with {code} before it started"))),
                Report::Notice(notice) => self.warn("Network", notice),
                Report::Attached(_) | Report::Suffers { .. } => {}
            }
        }
    }

    /// Begins to collect the output of a program that runs.
    fn console(&self, running: &mut Running, log: Log) -> std::io::Result<(Arc<Console>, JoinHandle<()>)> {
        let terminal = running.take_terminal()?.map(Arc::new);
        let once = self.container.stdin_once == Some(true);
        let console = Arc::new(Console::new(terminal.clone(), running.take_input(), once));
        let shown = Arc::clone(&console);
        let output = match (terminal, running.take_output()) {
            (Some(terminal), _) => tokio::spawn(log::collect(terminal.output(), tokio::io::empty(), log, shown)),
            (None, Some((stdout, stderr))) => tokio::spawn(log::collect(stdout, stderr, log, shown)),
            (None, None) => return Err(std::io::Error::other("the output was taken before")),
        };
        Ok((console, output))
    }

    fn spec(&self, image: &Image, places: &BTreeMap<String, PathBuf>) -> Result<ContainerSpec, Refusal> {
        let config_error = |message: String| Refusal { reason: "CreateContainerConfigError", message };
        let namespace = self.pod.namespace().unwrap_or_default();
        let links = self.pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
        let services = self.context.directory.environment(&namespace, links);
        let around = Surroundings {
            pod: &self.pod,
            addresses: self.addresses,
            sources: &self.sources,
            image: &image.config.env,
            services: &services,
        };
        let environment = environment(&self.container, &around).map_err(|error| config_error(error.to_string()))?;
        let ingredients = Ingredients {
            pod: &self.pod,
            container: &self.container,
            image,
            environment,
            volumes: places,
            addresses: self.addresses,
            confine: self.context.capabilities.confinement && self.network().is_none() && !self.host_network(),
            has_network: self.network().is_some(),
            directory: &self.context.pod_directory(&self.pod.uid().unwrap_or_default()),
            run: &self.directory(),
            neighbour: ephemeral::neighbour(self)?,
        };
        container_spec(&ingredients).map_err(|error| config_error(error.to_string()))
    }
}

/// A container whose program runs.
pub(super) struct Run {
    pub(super) running: Running,
    pub(super) output: JoinHandle<()>,
    /// The file that it goes to.
    pub(super) log: PathBuf,
    pub(super) console: Arc<Console>,
    pub(super) inside: Inside,
    /// Others find the container by it.
    pub(super) entry: Entry,
    /// Its images stay in the store.
    #[expect(dead_code, reason = "held for their locks")]
    held: Vec<Hold>,
    pub(super) origin: Origin,
    pub(super) started: Timestamp,
    /// What is known of a container that an earlier node started.
    pub(super) before: Option<Before>,
    /// What it was ended for.
    pub(super) excess: Option<Excess>,
}

impl Run {
    /// Sees the program through to its end.
    async fn tend(mut self, job: &mut Job) {
        let mut ended = None;
        if self.before.is_none() {
            job.event("Started", format!("Started container {}", job.container.name));
            ended = self.post_start(job).await;
        }
        job.tell(Update::Started { at: self.started, image_id: self.origin.image_id.clone() }).await;
        let code = match ended {
            Some(code) => code,
            None => self.watch(job).await,
        };
        self.finish(job, code).await;
    }

    /// Probes and watches the program until it has ended.
    async fn watch(&mut self, job: &mut Job) -> i32 {
        let (sender, mut findings) = mpsc::channel(FINDINGS_MAX);
        let before = self.before.unwrap_or_default();
        let prober = tokio::spawn(prober::watch(self.inside.clone(), before, sender)).abort_handle();
        let mut watchdog = self.watchdog(job);
        let mut orders = self.inside.ailment.orders();
        let code = loop {
            tokio::select! {
                report = self.running.next_report() => match report {
                    Report::Exited(code) => break code,
                    Report::Failed(_) => break 128,
                    Report::Notice(notice) => job.warn("Network", notice),
                    Report::Started { .. } | Report::Attached(_) => {}
                    Report::Suffers { number, problem } => self.inside.ailment.told(number, problem),
                },
                request = orders.next() => self.running.request(request).await,
                Some(finding) = findings.recv() => job.tell(Update::Finding(finding)).await,
                excess = watchdog.excess(), if self.excess.is_none() => {
                    job.warn(excess.reason(), format!("Container {} is ended: {excess}", job.container.name));
                    self.excess = Some(excess);
                    self.running.request(Request::Kill).await;
                }
                Ok(()) = job.bounds.changed() => {
                    let wanted = job.bounds.borrow_and_update().clone();
                    let outcome = self.rebound(&mut watchdog, &wanted);
                    job.tell(Update::Rebound { resources: wanted.resources, outcome }).await;
                }
                Ok(()) = job.stop.changed() => {
                    let grace = *job.stop.borrow_and_update();
                    if let Some(grace) = grace {
                        break self.stop(job, grace).await;
                    }
                }
            }
        };
        prober.abort();
        code
    }

    /// What watches over the use of the container.
    fn watchdog(&self, job: &mut Job) -> Watchdog {
        let bounds = job.bounds.borrow_and_update().clone();
        let (uid, name) = (job.pod.uid().unwrap_or_default(), job.container.name.clone());
        let together = Together { live: job.context.live.clone(), uid, name };
        Watchdog::new(&bounds, (self.inside.init, self.inside.group.clone()), together)
    }
}

/// Waits for the end of the program.
pub(super) async fn exit_code(running: &mut Running) -> i32 {
    loop {
        if let Report::Exited(code) = running.next_report().await {
            return code;
        }
    }
}
