//! `windlass dev`: the project's operators on a cluster of their own, rebuilt as the code changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::{Mutex, mpsc};
use windlass_cluster::{Cluster, PODS_DEFAULT};

use super::serve;
use crate::arguments::{ProfileName, ServeOptions, Target};
use crate::dev::board::{Title, draw};
use crate::dev::compile::Compile;
use crate::dev::course::{Course, Event, Order};
use crate::dev::install::{Installed, install, write_kubeconfig, write_token};
use crate::dev::process::{Launch, Process};
use crate::dev::samples::Samples;
use crate::dev::screen::Screen;
use crate::dev::sources::Sources;
use crate::dev::{narrator, nodes, resources, sources};
use crate::failure::Failure;
use crate::scaffold::project::Project;
use crate::view::output::say;

/// Events that wait to be taken in; whoever makes more waits.
const EVENTS_MAX: usize = 256;
/// How often the screen and the resources are looked at; both cost something only if something changed.
const LOOK: Duration = Duration::from_millis(250);
/// How often the operator's token is made anew, well before it ends.
const TOKEN_RENEWAL: Duration = Duration::from_secs(20 * 60);

/// The file of the cluster's folder with the address at which the operator tells of itself.
pub(super) const JOURNAL: &str = "operator.journal";
/// The file of the cluster's folder with the samples that the cluster has.
const SAMPLES: &str = "samples.json";

/// Options of `dev`.
#[derive(Args)]
pub(crate) struct DevOptions {
    /// How much of a cluster runs; with workloads, Pods only pretend to run: at once, and without their images.
    #[arg(long, value_enum, default_value = "workloads")]
    profile: ProfileName,
    /// The port of the API server.
    #[arg(long, default_value_t = 6443)]
    port: u16,
}

/// Runs the command.
pub(crate) async fn run(options: &DevOptions, target: &Target) -> Result<(), Failure> {
    let project = Project::find(&std::env::current_dir()?)?;
    let dir = target.dir.clone().unwrap_or_else(|| project.root.join(".windlass"));
    let serve = ServeOptions {
        profile: options.profile,
        nodes: 1,
        max_pods: PODS_DEFAULT,
        port: options.port,
        isolation: None,
        pod_network: None,
        no_operators: true,
        audit_log: None,
        audit_policy: None,
    };
    let serving = serve::start(&serve, &dir).await?;
    nodes::forget_others(&serving.cluster.client(), options.profile == ProfileName::Node).await?;
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    let kubeconfig = std::path::absolute(dir.join("kubeconfig"))?;
    let title = Title {
        project: project.name.clone(),
        profile: options.profile.word(),
        kubeconfig: short(&kubeconfig).display().to_string(),
    };
    let samples = Samples {
        folder: project.root.join(sources::SAMPLES),
        memory: dir.join(SAMPLES),
        namespace: target.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        turn: Mutex::default(),
    };
    let screen = Screen::take();
    if screen.is_none() {
        serve::log_to_stderr();
        say!("cluster: up, profile {}, KUBECONFIG={}", title.profile, kubeconfig.display());
    }
    tokio::spawn(sources::watch(Sources::of(&project), events.clone()));
    let (course, orders) = Course::begin();
    let mut dev = Dev {
        project,
        dir,
        samples: Arc::new(samples),
        cluster: serving.cluster,
        events,
        course,
        title,
        screen,
        compile: None,
        process: None,
    };
    let result = dev.live(inbox, orders).await;
    dev.end().await;
    result
}

/// All that runs.
struct Dev {
    project: Project,
    dir: PathBuf,
    samples: Arc<Samples>,
    cluster: Cluster,
    events: mpsc::Sender<Event>,
    course: Course,
    title: Title,
    screen: Option<Screen>,
    compile: Option<Compile>,
    process: Option<Process>,
}

impl Dev {
    /// Takes in events until it is to stop.
    async fn live(&mut self, mut inbox: mpsc::Receiver<Event>, first: Vec<Order>) -> Result<(), Failure> {
        let stop = serve::stop_signal();
        let mut stop = std::pin::pin!(stop);
        let mut looks = tokio::time::interval(LOOK);
        let mut renewals = tokio::time::interval(TOKEN_RENEWAL);
        let mut seen = None;
        self.obey(first).await;
        loop {
            tokio::select! {
                result = &mut stop => return result,
                failure = self.cluster.failure() => return Err(Failure::new(failure.to_string())),
                Some(event) = inbox.recv() => self.take(event).await,
                _ = looks.tick() => self.look(&mut seen).await,
                _ = renewals.tick() => self.renew_token(),
            }
        }
    }

    async fn take(&mut self, event: Event) {
        if self.screen.is_none() {
            narrator::tell(&event, &self.course.rows).iter().for_each(|line| say!("{line}"));
        }
        let orders = self.course.take(event);
        self.obey(orders).await;
    }

    async fn obey(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Build => self.compile = Some(Compile::start(&self.project, self.events.clone())),
                Order::Install => self.install(),
                Order::Start(run) => self.start(run).await,
                Order::Pause(run, pause) => self.tell_later(pause, Event::Again(run)),
                Order::Apply => self.apply(),
            }
        }
    }

    fn install(&self) {
        let (client, program) = (self.cluster.client(), self.project.program());
        self.tell(async move {
            let installed = install(&client, &program).await;
            Event::Installed(installed.map(Arc::new).map_err(|failure| failure.text()))
        });
    }

    /// Ends the operator that runs and starts the program. Not beside: the process belongs to this thread.
    async fn start(&mut self, run: u32) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
        let Some(installed) = self.course.installed.clone() else { return };
        match self.launch(run, &installed).await {
            Ok(process) => self.process = Some(process),
            Err(failure) => self.tell(async move { Event::Ended(run, failure.text()) }),
        }
    }

    async fn launch(&self, run: u32, installed: &Installed) -> Result<Process, Failure> {
        let kubeconfig = write_kubeconfig(&self.cluster.client(), installed, &self.dir).await?;
        let journal = self.dir.join(JOURNAL);
        let launch = Launch { program: self.project.program(), kubeconfig, journal, run };
        Process::start(&launch, installed, &self.events)
    }

    fn apply(&self) {
        let (client, samples) = (self.cluster.client(), self.samples.clone());
        self.tell(async move {
            let applied = samples.apply(&client).await;
            Event::Applied(applied.map_err(|failure| failure.text()))
        });
    }

    /// Looks at the resources if anything was written since the last look, and draws.
    async fn look(&mut self, seen: &mut Option<windlass_store::Revision>) {
        let revision = self.cluster.api().store().revision();
        if let Some(installed) = self.course.installed.clone().filter(|_| *seen != Some(revision)) {
            *seen = Some(revision);
            if let Ok(rows) = resources::look(&self.cluster.client(), &installed).await
                && rows != self.course.rows
            {
                self.take(Event::Seen(rows)).await;
            }
        }
        if let Some(screen) = &mut self.screen {
            let (width, height) = Screen::size();
            screen.draw(&draw(&self.title, &self.course, width, height));
        }
    }

    fn renew_token(&self) {
        let Some(installed) = self.course.installed.clone() else { return };
        let (client, file) = (self.cluster.client(), self.dir.join("operator.token"));
        // One that cannot be made now is made at the next start.
        tokio::spawn(async move { write_token(&client, &installed, &file).await });
    }

    fn tell(&self, event: impl Future<Output = Event> + Send + 'static) {
        let events = self.events.clone();
        // Nobody listens any more only at the end.
        tokio::spawn(async move { events.send(event.await).await });
    }

    fn tell_later(&self, pause: Duration, event: Event) {
        self.tell(async move {
            tokio::time::sleep(pause).await;
            event
        });
    }

    /// Ends everything, in order.
    async fn end(self) {
        drop(self.screen);
        say!("stopping: every process ends; the cluster's data stays in {}", self.dir.display());
        if let Some(compile) = self.compile {
            compile.stop().await;
        }
        if let Some(process) = self.process {
            process.stop().await;
        }
        let _ = std::fs::remove_file(self.dir.join(JOURNAL));
        self.cluster.shutdown().await;
    }
}

/// A path as people type it: from where they are, if it is below.
fn short(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path)
}
