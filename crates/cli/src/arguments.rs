//! What can be typed.
#![expect(clippy::struct_excessive_bools, reason = "a switch is a bool")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass_cluster::{PODS_DEFAULT, PODS_MAX};

use crate::commands::chaos::ChaosCommand;
use crate::commands::create::CreateCommand;
use crate::commands::dev::DevOptions;
use crate::commands::image::ImageCommand;
use crate::commands::init::InitOptions;
use crate::commands::node::NodeCommand;
use crate::commands::plan::PlanOptions;
use crate::commands::why::WhyOptions;
use crate::isolation::IsolationName;

/// Windlass keeps declared applications running.
#[derive(Parser)]
#[command(name = "windlass", version, about, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which cluster is meant, and where in it.
#[derive(Args, Clone)]
pub(crate) struct Target {
    /// State of the embedded cluster [default: .windlass in the current folder].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The kubeconfig to use instead of the embedded cluster's.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// The namespace to work in.
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the embedded cluster and its operators, apply files, and show what happens until all is ready.
    Up(UpOptions),
    /// Run the cluster's process; `up --detach` starts it this way.
    #[command(hide = true)]
    Serve(ServeOptions),
    /// Stop the embedded cluster and every process it runs.
    Down(DownOptions),
    /// Show the embedded cluster: process, address, operators, applications.
    Status,
    /// Show objects.
    Get(GetOptions),
    /// Make objects as files say.
    Apply(ApplyOptions),
    /// Delete objects by file or by name.
    Delete(DeleteOptions),
    /// Show what the operators would do if objects were applied or deleted, or now; nothing is done.
    Plan(PlanOptions),
    /// Show one object in full, with its events.
    Describe(DescribeOptions),
    /// Show why an object is not ready, what its operator saw, decided and did, and what to do.
    Why(WhyOptions),
    /// Show what a Pod's programs print.
    Logs(LogsOptions),
    /// Wait until objects are as said.
    Wait(WaitOptions),
    /// Show events, oldest first.
    Events(EventsOptions),
    /// Make Pods and Services fail on purpose, for a while: kill, pause, disconnect, fill, slow, skew.
    #[command(subcommand)]
    Chaos(ChaosCommand),
    /// Show, fill and clear the store of images that Pods run from.
    #[command(subcommand)]
    Image(ImageCommand),
    /// Make a project of operators: a Cargo project that builds, with as little in it as possible.
    Init(InitOptions),
    /// Add to the project of this folder.
    #[command(subcommand)]
    Create(CreateCommand),
    /// Run the operators of this project on a cluster of their own, and build them anew whenever the code changes.
    Dev(DevOptions),
    /// Make this machine a node of a Kubernetes cluster.
    #[command(subcommand)]
    Node(NodeCommand),
    /// Fill a folder with a kube-apiserver, etcd and kubectl for the envtest suites of Go projects.
    Envtest(EnvtestOptions),
    /// Print the completion script of a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// How much of a cluster runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// The API alone.
    Bare,
    /// And garbage collection, namespaces, service accounts.
    Gc,
    /// And workload controllers with a node that only pretends.
    Workloads,
    /// And real processes.
    Node,
}

impl ProfileName {
    /// The profile as it is typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Gc => "gc",
            Self::Workloads => "workloads",
            Self::Node => "node",
        }
    }
}

#[derive(Args, Clone)]
pub(crate) struct ServeOptions {
    /// How much of a cluster runs.
    #[arg(long, value_enum, default_value = "node")]
    pub(crate) profile: ProfileName,
    /// How many nodes only pretend to run Pods, with the profile workloads.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) nodes: usize,
    /// How many real Pods may run.
    #[arg(long, value_name = "NUMBER", default_value_t = PODS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(PODS_MAX)))]
    pub(crate) max_pods: u32,
    /// The port of the API server.
    #[arg(long, default_value_t = 6443)]
    pub(crate) port: u16,
    /// How Pods are kept apart [default: as at the last start, and sandbox at the first].
    #[arg(long, value_enum)]
    pub(crate) isolation: Option<IsolationName>,
    /// The addresses of Services and Pods with networks of their own, such as 10.77.0.0/16 [default: a range that is free].
    #[arg(long, value_name = "RANGE", requires = "isolation")]
    pub(crate) pod_network: Option<windlass_cluster::ClusterRange>,
    /// Do not install the operators that ship with Windlass.
    #[arg(long)]
    pub(crate) no_operators: bool,
    /// Log every request to this file, a line of JSON each.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    /// The audit policy that says which requests are logged.
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    pub(crate) audit_policy: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct UpOptions {
    /// Files, folders or - to apply once the cluster runs.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Return when everything is ready and leave the cluster running.
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// How long to wait until everything is ready.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
}

#[derive(Args)]
pub(crate) struct DownOptions {
    /// Delete the cluster's data too.
    #[arg(long)]
    pub(crate) purge: bool,
}

/// The forms of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// resource/name.
    Name,
}

#[derive(Args)]
pub(crate) struct GetOptions {
    /// Resources: `pods`, `deploy,rs`, `pod/x`, `memcached x y`.
    #[arg(required = true)]
    pub(crate) resources: Vec<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// The form of output.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Output>,
    /// Only objects with these labels.
    #[arg(short = 'l', long)]
    pub(crate) selector: Option<String>,
    /// Only objects with these fields.
    #[arg(long)]
    pub(crate) field_selector: Option<String>,
    /// Go on and show changes.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Args)]
pub(crate) struct ApplyOptions {
    /// Files, folders or -.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Take over fields that others own.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Check on the server, change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What happens to what an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cascade {
    /// Deleted afterwards.
    Background,
    /// Deleted before.
    Foreground,
    /// Left alone.
    Orphan,
}

#[derive(Args)]
pub(crate) struct DeleteOptions {
    /// Resources by name: `pod/x`, `memcached x y`.
    pub(crate) resources: Vec<String>,
    /// Files, folders or - that name the objects.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Every object with these labels.
    #[arg(short = 'l', long)]
    pub(crate) selector: Option<String>,
    /// Every object of the resource.
    #[arg(long)]
    pub(crate) all: bool,
    /// What happens to what the objects own.
    #[arg(long, value_enum, default_value = "background")]
    pub(crate) cascade: Cascade,
    /// Do not wait until the objects are gone.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// No failure when an object does not exist.
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// How long to wait.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
}

#[derive(Args)]
pub(crate) struct DescribeOptions {
    /// Resources: `pod/x`, `memcached x`, or a resource for all of its objects.
    #[arg(required = true)]
    pub(crate) resources: Vec<String>,
}

#[derive(Args)]
pub(crate) struct LogsOptions {
    /// A Pod, or `deploy/x`, `rs/x`, `memcached/x` for the first Pod of it.
    pub(crate) pod: String,
    /// The container.
    #[arg(short, long)]
    pub(crate) container: Option<String>,
    /// Go on as more is printed.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Of the run before the last restart.
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// With times.
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// Only the last lines.
    #[arg(long)]
    pub(crate) tail: Option<u32>,
    /// Only what is newer, such as 5m.
    #[arg(long, value_parser = duration)]
    pub(crate) since: Option<std::time::Duration>,
}

#[derive(Args)]
pub(crate) struct WaitOptions {
    /// Resources: `pod/x`, `memcached x y`, or a resource with --all or -l.
    #[arg(required = true)]
    pub(crate) resources: Vec<String>,
    /// `condition=Ready[=True]`, `delete`, `create` or `jsonpath={.status.x}=value`.
    #[arg(long = "for", value_name = "WHAT")]
    pub(crate) what: String,
    /// Every object with these labels.
    #[arg(short = 'l', long)]
    pub(crate) selector: Option<String>,
    /// Every object of the resource.
    #[arg(long)]
    pub(crate) all: bool,
    /// How long.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
}

#[derive(Args)]
pub(crate) struct EventsOptions {
    /// Only of this object, such as `memcached/x`.
    #[arg(long = "for", value_name = "OBJECT")]
    pub(crate) object: Option<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Go on and show new ones.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Args)]
pub(crate) struct EnvtestOptions {
    /// The folder; KUBEBUILDER_ASSETS names it to the suites.
    #[arg(value_name = "FOLDER")]
    pub(crate) dir: PathBuf,
    /// The kubectl to put there, instead of one that is found.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubectl: Option<PathBuf>,
}

/// Reads `90s`, `5m`, `1h30m` or a plain number of seconds.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(std::time::Duration::from_secs(seconds));
    }
    let parsed =
        text.parse::<jiff::SignedDuration>().map_err(|_| "write a time such as 30s, 5m or 1h30m".to_owned())?;
    parsed.try_into().map_err(|_| "a time cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations_read_as_kubectl_writes_them() {
        for (text, seconds) in [("90", 90), ("30s", 30), ("5m", 300), ("1h30m", 5400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert!(duration("soon").is_err());
        assert!(duration("-5s").is_err());
    }
}
