//! `windlass chaos`: faults on purpose, for a while, for Pods and Services.

use std::time::Duration;

use clap::{Args, Subcommand};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{CustomResourceExt, ResourceExt};
use windlass_node::chaos::{
    Chaos, ChaosSpec, ChaosStatus, DURATION_MAX, Disconnect, Fault, Fill, Phase, Repeat, Skew, Slow, VictimState,
};

use crate::arguments::{Target, duration};
use crate::chaos::{Aim, choose, manifests, side, table};
use crate::connection::{Connection, connect};
use crate::failure::Failure;
use crate::view::output::{say, show};

/// How long a fault may take to begin.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(30);
/// How long what was ended may take to be undone.
const END_TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Subcommand)]
pub(crate) enum ChaosCommand {
    /// Kill programs as by a crash: exit code 137, and a restart as the Pod's policy says.
    Kill(FaultOptions),
    /// Stop all processes for a while.
    Pause(FaultOptions),
    /// Cut Pods, or a Service, off: from everything, or from what --from names.
    Disconnect {
        #[command(flatten)]
        options: FaultOptions,
        /// The other side: `api`, `pod/x`, `service/x`, `app=db` (labels) or an address; may be given more than once.
        #[arg(long, value_name = "SIDE")]
        from: Vec<String>,
    },
    /// Make a volume full: its files cannot grow.
    Fill {
        #[command(flatten)]
        options: FaultOptions,
        /// The name of the volume in the Pod.
        #[arg(long)]
        volume: String,
    },
    /// Make writes and flushes take longer.
    Slow {
        #[command(flatten)]
        options: FaultOptions,
        /// By how much, such as 200ms.
        #[arg(long, default_value = "200ms")]
        delay: String,
        /// The name of the volume in the Pod, if not all files are meant.
        #[arg(long)]
        volume: Option<String>,
    },
    /// Make the time of day wrong.
    Skew {
        #[command(flatten)]
        options: FaultOptions,
        /// By how much, such as 5m or -1h.
        #[arg(long, allow_hyphen_values = true)]
        by: String,
    },
    /// Show what is or was done.
    Ls {
        /// In all namespaces.
        #[arg(short = 'A', long)]
        all_namespaces: bool,
    },
    /// End faults before their time, and wait until they are undone.
    Stop {
        /// Their names, as `ls` shows them.
        names: Vec<String>,
        /// All of the namespace.
        #[arg(long)]
        all: bool,
    },
    /// Print what a cluster needs to know the kind: its definition, and the rights of nodes to carry it out.
    Manifests,
}

#[derive(Args)]
pub(crate) struct FaultOptions {
    /// A Pod, or `deploy/x`, `sts/x`, `memcached/x` for its Pods; `svc/x` for a Service, or what is behind it.
    #[arg(required_unless_present = "selector", conflicts_with = "selector")]
    pub(crate) target: Option<String>,
    /// Pods with these labels.
    #[arg(short = 'l', long)]
    pub(crate) selector: Option<String>,
    /// Only this container.
    #[arg(short, long)]
    pub(crate) container: Option<String>,
    /// One of the Pods, by chance.
    #[arg(long, conflicts_with = "percent")]
    pub(crate) one: bool,
    /// So many of a hundred Pods, by chance.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) percent: Option<u8>,
    /// How long it lasts; at most an hour.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) lasts: Duration,
    /// Do it again so long after the last time began.
    #[arg(long, value_name = "TIME", requires = "times")]
    pub(crate) every: Option<String>,
    /// How often in all.
    #[arg(long, requires = "every")]
    pub(crate) times: Option<u32>,
    /// Print the resource, do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(command: &ChaosCommand, target: &Target) -> Result<(), Failure> {
    if let ChaosCommand::Manifests = command {
        show!("{}", manifests());
        return Ok(());
    }
    let connection = connect(target).await?;
    match command {
        ChaosCommand::Ls { all_namespaces } => list(&connection, *all_namespaces).await,
        ChaosCommand::Stop { names, all } => stop(&connection, names, *all).await,
        ChaosCommand::Kill(options) => begin(&connection, options, Fault::Kill {}).await,
        ChaosCommand::Pause(options) => begin(&connection, options, Fault::Pause {}).await,
        ChaosCommand::Disconnect { options, from } => {
            let from = from.iter().map(|word| side(word)).collect::<Result<_, _>>()?;
            begin(&connection, options, Fault::Disconnect(Disconnect { from })).await
        }
        ChaosCommand::Fill { options, volume } => {
            begin(&connection, options, Fault::Fill(Fill { volume: volume.clone() })).await
        }
        ChaosCommand::Slow { options, delay, volume } => {
            let slow = Slow { delay: delay.clone(), volume: volume.clone() };
            begin(&connection, options, Fault::Slow(slow)).await
        }
        ChaosCommand::Skew { options, by } => begin(&connection, options, Fault::Skew(Skew { by: by.clone() })).await,
        ChaosCommand::Manifests => Ok(()),
    }
}

/// Makes the resource and waits until it is known what became of it.
async fn begin(connection: &Connection, options: &FaultOptions, fault: Fault) -> Result<(), Failure> {
    if options.lasts > DURATION_MAX {
        return Err(Failure::new("a fault lasts an hour at most").advice("say --for 1h, or less"));
    }
    let is_kill = matches!(fault, Fault::Kill {});
    let Aim { target, mode, percent } = choose(connection, options, &fault).await?;
    let spec = ChaosSpec {
        target,
        mode,
        percent,
        duration: (!is_kill).then(|| format!("{}s", options.lasts.as_secs())),
        repeat: options.every.clone().zip(options.times).map(|(every, times)| Repeat { every, times }),
        fault,
    };
    let mut chaos = Chaos::new("", spec);
    chaos.metadata.name = None;
    chaos.metadata.generate_name = Some(format!("{}-", word(&chaos.spec.fault)));
    chaos.metadata.namespace = Some(connection.namespace.clone());
    if options.dry_run {
        let text = serde_saphyr::to_string(&chaos).map_err(|error| Failure::new(error.to_string()))?;
        show!("{text}");
        return Ok(());
    }
    let all: Api<Chaos> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let made = all.create(&PostParams::default(), &chaos).await.map_err(unknown)?;
    let name = made.name_any();
    let settled = await_condition(all, &name, |chaos: Option<&Chaos>| {
        chaos.is_none_or(|chaos| chaos.status.as_ref().is_some_and(is_known))
    });
    let Ok(Ok(Some(Chaos { status: Some(status), .. }))) = tokio::time::timeout(BEGIN_TIME_MAX, settled).await else {
        return Err(Failure::timed_out(format!("no node has taken up chaos/{name} within {BEGIN_TIME_MAX:?}"))
            .advice(format!("Windlass nodes carry it out; `windlass chaos stop {name}` gives it up")));
    };
    report(&name, &status)
}

/// Whether it is known what became of everybody.
fn is_known(status: &ChaosStatus) -> bool {
    let is_open = status.victims.iter().any(|victim| victim.state == VictimState::Ordered);
    let is_met = !status.victims.is_empty() || !status.message.is_empty();
    status.phase == Phase::Failed || (status.phase != Phase::Pending && is_met && !is_open)
}

/// Tells who suffers, and fails if nobody does.
fn report(name: &str, status: &ChaosStatus) -> Result<(), Failure> {
    let done = |state| !matches!(state, VictimState::Refused);
    for victim in status.victims.iter().filter(|victim| done(victim.state)) {
        let part = if victim.container.is_empty() { String::new() } else { format!(" ({})", victim.container) };
        let what = match (victim.state, &status.ends_at) {
            (VictimState::Suffering, Some(end)) => format!("until {}", end.0.strftime("%H:%M:%S UTC")),
            _ => "done".to_owned(),
        };
        say!("chaos/{name}: {} of {}{part}, {what}", status.fault, victim.name);
    }
    let refused: Vec<_> = status.victims.iter().filter(|victim| !done(victim.state)).collect();
    for victim in &refused {
        eprintln!("chaos/{name}: not {}: {}", victim.name, victim.message);
    }
    if status.victims.len() > refused.len() {
        return Ok(());
    }
    let why = if refused.is_empty() { status.message.clone() } else { "nobody suffers it".to_owned() };
    Err(Failure::new(format!("chaos/{name}: {why}")))
}

async fn list(connection: &Connection, everywhere: bool) -> Result<(), Failure> {
    let all: Api<Chaos> = match everywhere {
        true => Api::all(connection.client.clone()),
        false => Api::namespaced(connection.client.clone(), &connection.namespace),
    };
    let found = all.list(&ListParams::default()).await.map_err(unknown)?;
    if found.items.is_empty() {
        eprintln!("no chaos here");
        return Ok(());
    }
    show!("{}", table(&found.items, everywhere));
    Ok(())
}

async fn stop(connection: &Connection, names: &[String], everything: bool) -> Result<(), Failure> {
    let all: Api<Chaos> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let names = match (names, everything) {
        ([], false) => {
            return Err(Failure::new("say which chaos to stop, or --all").advice("`windlass chaos ls` shows them"));
        }
        ([], true) => {
            let found = all.list(&ListParams::default()).await.map_err(unknown)?;
            found.iter().map(ResourceExt::name_any).collect()
        }
        (names, _) => names.to_vec(),
    };
    for name in names {
        let name = name.trim_start_matches("chaos/");
        let victims = all.get(name).await.map_err(unknown)?.status.unwrap_or_default().victims;
        all.delete(name, &DeleteParams::default()).await.map_err(unknown)?;
        let gone = await_condition(all.clone(), name, |chaos: Option<&Chaos>| chaos.is_none());
        let _ = tokio::time::timeout(END_TIME_MAX, gone).await;
        let open = victims.iter().filter(|victim| victim.state.is_open()).count();
        say!("chaos/{name} stopped{}", if open > 0 { format!(", {open} being undone") } else { String::new() });
    }
    Ok(())
}

fn word(fault: &Fault) -> String {
    let value = serde_json::to_value(fault).unwrap_or_default();
    value.as_object().and_then(|object| object.keys().next().cloned()).unwrap_or_default()
}

/// A cluster that does not know the kind says only that there is no such path.
fn unknown(error: kube::Error) -> Failure {
    let is_missing =
        matches!(&error, kube::Error::Api(status) if status.code == 404 && status.message.contains("resource"));
    let failure = Failure::from(error);
    if !is_missing {
        return failure;
    }
    let name = Chaos::crd_name();
    Failure::new(format!("the cluster does not know {name}"))
        .advice("`windlass chaos manifests | kubectl apply -f -` makes it known; Windlass nodes carry it out")
}
