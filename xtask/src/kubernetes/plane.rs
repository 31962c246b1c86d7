//! A control plane that stays: up and down.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use windlass_kubernetes::{ControlPlane, Plan, Process, Programs, User, kubeconfig};

use super::{ground, kubectl::Kubectl, programs};
use crate::subject::Subject;

/// How long a process may take to end when asked.
const END_TIME_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// The node that joins.
pub(super) const NODE: &str = "windlass-node";

/// Options of `kubernetes up`.
#[derive(Args)]
pub(crate) struct Options {
    /// The port of the API server [default: one that is free].
    #[arg(long)]
    port: Option<u16>,
    /// Let Windlass's node join, so that Pods run; needs root.
    #[arg(long)]
    node: bool,
    /// How many Pods the node accepts.
    #[arg(long, default_value_t = 110)]
    max_pods: u32,
    #[command(flatten)]
    subject: Subject,
}

/// Starts a control plane that outlives this program.
pub(super) fn up(options: &Options) -> Result<()> {
    let state = state();
    if state.exists() {
        bail!("a control plane is there already; end it with `cargo xtask kubernetes down`");
    }
    let place = programs::place().join("plane");
    let plane = start(&place, options.node, options.port)?;
    let kubeconfig = plane.kubeconfig();
    let mut numbers = Vec::new();
    if options.node {
        let windlass = options.subject.program()?;
        numbers.push(join(&plane, &windlass, options.max_pods)?.release());
    }
    numbers.extend(plane.release());
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    fs::write(&state, numbers.join("\n"))?;
    println!("export KUBECONFIG={}", kubeconfig.display());
    Ok(())
}

/// Ends the control plane that is there.
pub(super) fn down() -> Result<()> {
    let state = state();
    let text = fs::read_to_string(&state).context("no control plane is there")?;
    for number in text.lines() {
        end(number.parse().context("the numbers of processes are numbers")?)?;
    }
    ground::give_back();
    fs::remove_file(&state)?;
    Ok(())
}

/// Starts a control plane in a folder that is emptied before; one that nodes can join has an address that Pods reach.
/// Every write is in its audit log.
pub(super) fn start(place: &Path, is_joinable: bool, port: Option<u16>) -> Result<ControlPlane> {
    let folder = programs::folder()?;
    fs::remove_dir_all(place).ok();
    fs::create_dir_all(place)?;
    let mut plan = Plan { port, ..Plan::default() };
    if is_joinable {
        ground::take()?;
        (plan.address, plan.services) = (ground::server(), ground::services());
    }
    plan.flags = audit(place)?;
    let kubectl = folder.join("kubectl");
    let is_ready = |kubeconfig: &Path| programs::is_ready(&kubectl, kubeconfig);
    Ok(ControlPlane::start(&Programs::in_folder(&folder)?, place, &plan, &is_ready)?)
}

/// Where the audit log of a control plane is.
pub(super) fn audit_log(place: &Path) -> PathBuf {
    place.join("audit.log")
}

/// Flags that log every write: who, what, when and with which outcome.
fn audit(place: &Path) -> Result<Vec<String>> {
    let policy = place.join("audit-policy.yaml");
    fs::write(
        &policy,
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
         rules:\n- level: None\n  verbs: [get, list, watch]\n- level: Metadata\n",
    )?;
    Ok(vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", audit_log(place).display()),
    ])
}

/// Lets Windlass's node join, with the rights of a kubelet and of kube-proxy, and waits until it is ready.
pub(super) fn join(plane: &ControlPlane, windlass: &Path, pods_max: u32) -> Result<Process> {
    let place = &plane.place().folder;
    let user = format!("system:node:{NODE}");
    plane.keys().user(User { file: NODE, name: &user, group: Some("system:nodes") })?;
    let own = place.join(format!("{NODE}.kubeconfig"));
    fs::write(&own, kubeconfig(&plane.place().server(), plane.keys().folder(), NODE))?;
    let kubectl = Kubectl::new(&plane.kubeconfig());
    let binding = ["create", "clusterrolebinding", NODE, "--clusterrole=system:node-proxier"];
    kubectl.run(&[&binding[..], &["--user", &user]].concat())?;
    // Named like the other programs, so that it is known by its name.
    let link = programs::place().join("programs/windlass");
    fs::remove_file(&link).ok();
    std::os::unix::fs::symlink(windlass, &link)?;
    let mut command = Command::new(link);
    command.arg("--dir").arg(place.join("node")).arg("--kubeconfig").arg(&own);
    command.args(["node", "join", "--name", NODE, "--port", "0", "--isolation", "namespaces"]);
    command.args(["--pod-network", &ground::range(), "--max-pods", &pods_max.to_string()]);
    let node = Process::start(&mut command, &place.join("node.log"))?;
    kubectl.until(&["get", "node", NODE]).with_context(|| format!("see {}", place.join("node.log").display()))?;
    kubectl.run(&["wait", "--for=condition=Ready", "--timeout=120s", &format!("node/{NODE}")])?;
    Ok(node)
}

/// Asks a process to end that was started from the folder of programs; another that got its number is left alone.
pub(super) fn end(number: u32) -> Result<()> {
    let is_there = || {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(program).contains("kubernetes/programs/")
    };
    if is_there() {
        Command::new("kill").arg(number.to_string()).status()?;
    }
    let begin = Instant::now();
    while is_there() {
        if begin.elapsed() > END_TIME_MAX {
            bail!("process {number} does not end");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn state() -> PathBuf {
    programs::place().join("running")
}
