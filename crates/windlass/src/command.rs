//! The operator's own command line.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use kube::core::{Expression, Selector};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_runtime::trace::TraceSettings;
use windlass_runtime::webhook::{ServeError, Serving, Way, Webhooks};
use windlass_runtime::{Handle, LeaderConfig, Manager, ManagerConfig, Namespaces, ShardConfig};

use crate::app::Program;
use crate::bundle::command::BundleArgs;
use crate::connect::Connection;
use crate::log::{self, LogFormat};
use crate::manifests::command::{ManifestsArgs, RbacArgs};
use crate::observe::{self, Scope};
use crate::permissions::{self, Asked};
use crate::plan::command::PlanArgs;
use crate::{bundle, manifests, migrate, plan, rbac};

/// Where webhooks are, unless it is said.
const WEBHOOK_PORT: u16 = 9443;
/// How long the start waits for what is installed with webhooks.
const WEBHOOKS_WAIT: Duration = Duration::from_secs(10);

#[derive(Parser)]
#[command(about = "A Windlass operator", subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the operator
    Run(RunArgs),
    /// Prints the definitions of the operator's kinds
    Crd,
    /// Prints the permissions that the operator needs
    Rbac(RbacArgs),
    /// Prints all that a cluster needs to run the operator, or writes it as a chart or for kustomize
    Manifests(ManifestsArgs),
    /// Writes the operator and all that is to be known of it as one artifact
    Bundle(BundleArgs),
    /// Moves the resources of all namespaces to the storage version; an operator that serves all does so by itself
    Migrate,
    /// Prints what the operator would do, and does nothing
    Plan(PlanArgs),
    /// Prints a Grafana dashboard of the operator
    Dashboard(JobArgs),
    /// Prints Prometheus alerts of the operator
    Alerts(AlertArgs),
}

#[derive(Args)]
struct RunArgs {
    /// Serves the resources of these namespaces only
    #[arg(long, short = 'n', env = "WATCH_NAMESPACE", value_name = "NAMESPACE,…", value_delimiter = ',')]
    watch_namespace: Vec<String>,
    /// Serves the resources of the namespaces with these labels only, as they come and go
    #[arg(long, value_name = "LABEL=VALUE,…", conflicts_with = "watch_namespace", value_parser = parse_labels)]
    watch_namespace_selector: Option<Selector>,
    /// Serves the clusters of these contexts of the kubeconfig, too
    #[arg(long, value_name = "CONTEXT,…", value_delimiter = ',')]
    also_context: Vec<String>,
    /// Where to serve metrics; 0 is nowhere
    #[arg(long, default_value = ":8080", value_parser = parse_address, value_name = "ADDRESS")]
    metrics_bind_address: Bind,
    /// Where to answer probes; 0 is nowhere
    #[arg(long, default_value = ":8081", value_parser = parse_address, value_name = "ADDRESS")]
    health_probe_bind_address: Bind,
    /// Where to listen for events from outside, if the operator has endpoints for them; 0 is nowhere
    #[arg(long, default_value = "0", value_parser = parse_address, value_name = "ADDRESS")]
    events_bind_address: Bind,
    /// Works only while this replica holds the lease
    #[arg(long)]
    leader_elect: bool,
    /// Shares the work with the other replicas: the resources are divided into this many parts, the same number for all
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=256), conflicts_with = "leader_elect")]
    shards: Option<u32>,
    /// The namespace of the lease; the Pod's own if it is not said
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// Who comes to the webhooks: nobody, the cluster that this operator runs in, or a cluster that reaches this
    /// machine's loopback address; for the latter all that points to them is put into the cluster, while this runs
    #[arg(long, value_enum, default_value_t = WebhookMode::Off)]
    webhooks: WebhookMode,
    /// Serves webhooks with tls.crt and tls.key of this folder, which somebody else makes and renews, and who also tells the API
    /// server of the webhooks
    #[arg(long, value_name = "FOLDER", conflicts_with = "webhooks")]
    webhook_cert_path: Option<PathBuf>,
    /// Where to listen for webhooks; :9443, or 127.0.0.1:9443 for --webhooks=local, if it is not said
    #[arg(long, value_parser = parse_address, value_name = "ADDRESS")]
    webhook_bind_address: Option<Bind>,
    /// The namespace of the Service and the Secret of webhooks; the Pod's own if it is not said
    #[arg(long, value_name = "NAMESPACE")]
    webhook_namespace: Option<String>,
    /// Keeps no journal: `windlass why` then knows only what the cluster says
    #[arg(long)]
    no_journal: bool,
    /// How to write the log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Args)]
struct JobArgs {
    /// A regular expression for the job of the scraper; any with the operator's name in it if it is not said
    #[arg(long, value_name = "REGEX")]
    job: Option<String>,
}

#[derive(Args)]
struct AlertArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Prints a PrometheusRule for the Prometheus operator, of this namespace, instead of a file of rules
    #[arg(long, value_name = "NAMESPACE")]
    prometheus_rule: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WebhookMode {
    Off,
    Cluster,
    Local,
}

/// An address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bind(Option<SocketAddr>);

/// Runs the command that `args` ask for.
pub(crate) fn run(program: &dyn Program, args: Vec<OsString>) -> ExitCode {
    let mut command = Cli::command().bin_name(program.name().to_owned());
    for extra in program.commands() {
        // Such a command reads its arguments itself, its help included.
        if args.get(1).is_some_and(|word| word == extra.name) {
            return (extra.run)(args[1..].to_vec());
        }
        command = command.subcommand(clap::Command::new(extra.name).about(extra.about));
    }
    let cli = match command.try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let result = match cli.command {
        Command::Run(args) => operate(program, &cli.connection, &args),
        Command::Crd => print(&program.crds().iter().map(manifests::value).collect::<Vec<_>>()),
        Command::Rbac(args) => manifests::command::rbac(program, &args).map_err(Into::into),
        Command::Manifests(args) => manifests::command::manifests(program, &args).map_err(Into::into),
        Command::Bundle(args) => bundle::command::run(program, &args).map_err(Into::into),
        Command::Migrate => move_all(program, &cli.connection),
        Command::Plan(args) => foresee(program, &cli.connection, &args),
        Command::Dashboard(args) => draw(&Scope::of(program, args.job.as_deref())),
        Command::Alerts(args) => {
            let rules = observe::alerts(&Scope::of(program, args.job.job.as_deref()));
            print(&[match args.prometheus_rule {
                Some(namespace) => rules.in_kubernetes(program.name(), &namespace),
                None => manifests::value(&rules),
            }])
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", program.name());
            ExitCode::FAILURE
        }
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn operate(program: &dyn Program, connection: &Connection, args: &RunArgs) -> Result<(), AnyError> {
    log::to_stderr(args.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = connection.client().await?;
        let mut config = ManagerConfig::new(program.name());
        config.metrics = args.metrics_bind_address.0;
        config.probes = args.health_probe_bind_address.0;
        config.events = args.events_bind_address.0;
        config.journal = !args.no_journal;
        config.traces = TraceSettings::from_environment(program.name())?;
        let own_namespace = client.default_namespace().to_owned();
        let lease_namespace = args.lease_namespace(&own_namespace);
        config.leader = args.leader_elect.then(|| LeaderConfig::new(lease_namespace.clone(), program.name()));
        config.shards = args.shards.map(|count| ShardConfig::new(lease_namespace, program.name(), count));
        let webhooks = webhooks(program, args, &own_namespace);
        let mut manager = Manager::new(client, config);
        let cluster = manager.handle();
        install(program, &mut manager, (&cluster, &own_namespace), args);
        for context in &args.also_context {
            let cluster = manager.cluster(context, connection.client_of(context).await?);
            let namespace = cluster.client.default_namespace().to_owned();
            install(program, &mut manager, (&cluster, &namespace), args);
        }
        tracing::info!(operator = program.name(), version = env!("CARGO_PKG_VERSION"), "Starting");
        let (stop, served) = (stop_on_signal()?, CancellationToken::new());
        let serving = match webhooks {
            Some(webhooks) => Some(serve(webhooks, &manager, served.clone()).await?),
            None => None,
        };
        let result = manager.run(stop).await;
        // What the controllers did to the end may have asked for webhooks.
        served.cancel();
        if let Some(serving) = serving {
            serving.ended().await;
        }
        tracing::info!(operator = program.name(), "Stopped");
        Ok(result?)
    })
}

fn move_all(program: &dyn Program, connection: &Connection) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { Ok(migrate::run(program, connection.client().await?).await?) })
}

fn foresee(program: &dyn Program, connection: &Connection, args: &PlanArgs) -> Result<(), AnyError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(plan::command::run(program, connection, args))?)
}

/// Puts the operator to work in one cluster, where `own` is its namespace.
fn install(program: &dyn Program, manager: &mut Manager, (cluster, own): (&Handle, &str), args: &RunArgs) {
    let namespaces = match &args.watch_namespace_selector {
        Some(labels) => Namespaces::labelled(cluster, labels.clone()),
        None => match args.served() {
            served if served.is_empty() => Namespaces::all(),
            served => Namespaces::only(served),
        },
    };
    program.install_in(manager, cluster, namespaces.clone());
    let name =
        cluster.cluster.as_ref().map_or_else(|| "permissions".to_owned(), |name| format!("permissions of {name}"));
    let check = manager.health().check(name, "not checked yet");
    let mut asked =
        Asked { operator: program.name().to_owned(), needs: program.needs(), namespaces, own: own.to_owned() };
    // Replicas find each other, and webhooks are reached, in the manager's own cluster alone.
    if cluster.cluster.is_none() {
        if args.leader_elect || args.shards.is_some() {
            asked.own = args.lease_namespace(own);
            asked.needs.extend(rbac::lead(program.name(), args.shards.is_some()));
        }
        if args.webhooks == WebhookMode::Cluster && args.webhook_namespace.as_ref().is_none_or(|it| *it == asked.own) {
            asked.needs.extend(rbac::webhooks(&program.registration(args.served())));
        }
        if args.webhook_cert_path.is_some() {
            asked.needs.extend(rbac::moves(&program.registration(args.served())));
        }
    }
    tokio::spawn(permissions::watch(cluster.client.clone(), cluster.tap.clone(), asked, check));
}

impl RunArgs {
    /// The namespaces to serve; an empty variable of the environment names none.
    fn served(&self) -> Vec<String> {
        self.watch_namespace.iter().filter(|name| !name.is_empty()).cloned().collect()
    }

    fn lease_namespace(&self, own: &str) -> String {
        self.leader_election_namespace.clone().unwrap_or_else(|| own.to_owned())
    }
}

/// The webhooks that are to be served, if any are.
fn webhooks(program: &dyn Program, args: &RunArgs, namespace: &str) -> Option<Webhooks> {
    let registration = program.registration(args.served());
    if registration.is_empty() {
        return None;
    }
    let namespace = args.webhook_namespace.as_deref().unwrap_or(namespace).to_owned();
    let (ip, way) = match (&args.webhook_cert_path, args.webhooks) {
        (Some(folder), _) => (Ipv4Addr::UNSPECIFIED, Way::Given(folder.clone())),
        (None, WebhookMode::Off) => {
            tracing::warn!("Webhooks are not served: start with --webhooks=local to serve them from here");
            return None;
        }
        (None, WebhookMode::Cluster) => {
            let name = manifests::service_name(program.name());
            (Ipv4Addr::UNSPECIFIED, Way::Service { namespace, name })
        }
        (None, WebhookMode::Local) => (Ipv4Addr::LOCALHOST, Way::Address { namespace }),
    };
    let address = match args.webhook_bind_address {
        Some(bind) => bind.0?,
        None => SocketAddr::new(IpAddr::V4(ip), WEBHOOK_PORT),
    };
    Some(Webhooks { registration, address, way })
}

async fn serve(webhooks: Webhooks, manager: &Manager, stop: CancellationToken) -> Result<Serving, ServeError> {
    let (handle, check) = (manager.handle(), manager.health().check("webhooks", "are not served yet"));
    let installs = matches!(webhooks.way, Way::Address { .. });
    let mut serving = webhooks.start(&handle, check, stop).await?;
    tracing::info!(address = %serving.address(), "Serving webhooks");
    if installs {
        // Caches of kinds that are not there yet would fail at first and begin with a pause.
        let _ = tokio::time::timeout(WEBHOOKS_WAIT, serving.ready()).await;
    }
    Ok(serving)
}

fn stop_on_signal() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopping.cancel();
    });
    Ok(stop)
}

fn draw(scope: &Scope) -> Result<(), AnyError> {
    println!("{}", serde_json::to_string_pretty(&observe::dashboard(scope))?);
    Ok(())
}

fn print(objects: &[Value]) -> Result<(), AnyError> {
    print!("{}", manifests::yaml(objects)?);
    Ok(())
}

/// `label=value`, or `label` for any value, several with commas.
fn parse_labels(text: &str) -> Result<Selector, String> {
    let expression = |part: &str| match part.trim().split_once('=') {
        _ if part.trim().is_empty() || part.contains('!') => {
            Err(format!("{part:?} is not label=value: write team=blue, or team for any value"))
        }
        Some((label, value)) => Ok(Expression::Equal(label.trim().to_owned(), value.trim().to_owned())),
        None => Ok(Expression::Exists(part.trim().to_owned())),
    };
    text.split(',').map(expression).collect::<Result<Vec<_>, _>>().map(Selector::from_iter)
}

/// `host:port`, `:port` for all addresses, or `0` for none.
fn parse_address(text: &str) -> Result<Bind, String> {
    if text == "0" {
        return Ok(Bind(None));
    }
    let wrong = || format!("{text:?} is not an address: write 127.0.0.1:8080, :8080, or 0 for none");
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| wrong())?;
        return Ok(Bind(Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))));
    }
    text.parse().map(|address| Bind(Some(address))).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_other_operators_read_them() {
        let rows = [
            ("0", Some(Bind(None))),
            (":8080", Some(Bind("0.0.0.0:8080".parse().ok()))),
            ("127.0.0.1:0", Some(Bind("127.0.0.1:0".parse().ok()))),
            ("8080", None),
            ("localhost", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_address(text).ok(), expected, "{text}");
        }
    }
}
