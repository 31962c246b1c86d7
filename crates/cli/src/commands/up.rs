//! `windlass up`: from nothing to everything ready, in one command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::apply::{Applied, Mode, apply_all};
use super::{request, serve};
use crate::arguments::{Target, UpOptions};
use crate::connection::{connect, dir};
use crate::failure::Failure;
use crate::manifest::{self, Manifest};
use crate::owned::below;
use crate::resource::Catalog;
use crate::view::columns::lay_out;
use crate::view::output::{say, show};
use crate::view::paint::{Colour, paint};
use crate::view::progress;

/// A cluster that has not answered by then will not.
const START_WAIT: Duration = Duration::from_secs(60);

/// Runs the command.
pub(crate) async fn run(options: UpOptions, target: &Target) -> Result<(), Failure> {
    let manifests = manifest::read(&options.files)?; // Before anything starts: a broken file changes nothing.
    if options.detach {
        detached(&options, &manifests, target).await
    } else {
        foreground(&options, &manifests, target).await
    }
}

async fn foreground(options: &UpOptions, manifests: &[Manifest], target: &Target) -> Result<(), Failure> {
    serve::log_to_stderr();
    let begin = Instant::now();
    let dir = dir(target);
    let mut serving = serve::start(&options.serve, &dir).await?;
    let namespace = target.namespace.as_deref().unwrap_or("default");
    let client = serving.cluster.client();
    let wanted = Wanted { namespace, manifests, operators: &serving.operators, timeout: options.timeout };
    say_up(begin, &dir);
    for sentence in serving.cluster.capabilities().map(|can| can.missing()).unwrap_or_default() {
        say!("{}", paint(Colour::Yellow, sentence));
    }
    let work = async {
        bring_up(&client, &wanted).await?;
        say!("\nRunning until Ctrl-C. In another terminal: export KUBECONFIG={}", absolute(&dir.join("kubeconfig")));
        progress::show_events(client.clone()).await;
        Ok(())
    };
    let result = tokio::select! {
        result = work => result,
        failure = serving.cluster.failure() => Err(Failure::new(failure.to_string())),
        result = serve::stop_signal() => result.map(|()| say!("\nStopping: every process that the cluster runs ends; its data stays in {}", dir.display())),
    };
    serving.cluster.shutdown().await;
    result
}

async fn detached(options: &UpOptions, manifests: &[Manifest], target: &Target) -> Result<(), Failure> {
    let begin = Instant::now();
    let dir = dir(target);
    let mut cluster = start_process(options, &dir).await?;
    let target = Target { dir: Some(dir.clone()), kubeconfig: None, context: None, ..target.clone() };
    let connection = connect(&target).await?;
    let operators = operator_deployments(&connection.client).await?;
    let wanted =
        Wanted { namespace: &connection.namespace, manifests, operators: &operators, timeout: options.timeout };
    say_up(begin, &dir);
    tokio::select! {
        up = bring_up(&connection.client, &wanted) => {
            up.map_err(|failure| failure.or_advice("the cluster goes on running; `windlass down` stops it"))?;
        }
        ended = cluster.wait() => {
            let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(Failure::new(format!("the cluster ended by itself ({how})")).advice(log_advice(&dir)));
        }
    }
    say!("\nRunning in the background. Use it: export KUBECONFIG={}", absolute(&dir.join("kubeconfig")));
    say!("Stop it: windlass down --dir {}", dir.display());
    Ok(())
}

/// The log of the cluster's process.
fn log_path(dir: &Path) -> PathBuf {
    dir.join("windlass.log")
}

fn log_advice(dir: &Path) -> String {
    format!("its log is {}", log_path(dir).display())
}

/// Starts this program again as the cluster's process and waits for its word.
async fn start_process(options: &UpOptions, dir: &Path) -> Result<Child, Failure> {
    windlass_cluster::Directory::create(dir).map_err(|error| Failure::new(error.to_string()))?;
    let log_path = log_path(dir);
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&log_path);
    let log = log.map_err(|error| Failure::new(format!("{}: {error}", log_path.display())))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--dir").arg(dir).args([
        "serve",
        "--profile",
        options.serve.profile.word(),
        "--nodes",
        &options.serve.nodes.to_string(),
        "--max-pods",
        &options.serve.max_pods.to_string(),
        "--port",
        &options.serve.port.to_string(),
    ]);
    if let Some(isolation) = options.serve.isolation {
        command.args(["--isolation", isolation.word()]);
    }
    if let Some(range) = options.serve.pod_network {
        command.args(["--pod-network", &range.to_string()]);
    }
    if options.serve.no_operators {
        command.arg("--no-operators");
    }
    for (name, path) in [("--audit-log", &options.serve.audit_log), ("--audit-policy", &options.serve.audit_policy)] {
        if let Some(path) = path {
            command.arg(name).arg(std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        }
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().expect("stdout was asked for");
    let mut output = BufReader::new(output);
    let read = tokio::time::timeout(START_WAIT, output.read_line(&mut line)).await;
    let answer: Value = serde_json::from_str(&line).unwrap_or_default();
    if read.is_ok() && answer["ready"] == true {
        return Ok(child);
    }
    let _ = child.start_kill();
    Err(Failure::from_json(&answer)
        .unwrap_or_else(|| Failure::new("the cluster did not start").advice(log_advice(dir))))
}

async fn operator_deployments(client: &Client) -> Result<Vec<Applied>, Failure> {
    let catalog = Catalog::of(client).await?;
    let resource = catalog.find("deployments.apps")?;
    let namespace = crate::operators::NAMESPACE;
    let list = request::get(client, &resource.path(Some(namespace), None), &[]).await?;
    let names = super::delete::names(&list).into_iter();
    Ok(names
        .map(|name| Applied {
            resource: resource.clone(),
            namespace: Some(namespace.to_owned()),
            name,
            change: "unchanged",
        })
        .collect())
}

/// What is to become ready on a cluster that serves.
struct Wanted<'a> {
    namespace: &'a str,
    manifests: &'a [Manifest],
    operators: &'a [Applied],
    timeout: Duration,
}

fn say_up(begin: Instant, dir: &Path) {
    let (cluster, up) = (paint(Colour::Bold, "cluster"), paint(Colour::Green, "up"));
    say!("{cluster} {up} in {:.1} s, state in {}", begin.elapsed().as_secs_f32(), dir.display());
}

/// Applies what is wanted and shows what happens until all of it is ready.
async fn bring_up(client: &Client, wanted: &Wanted<'_>) -> Result<(), Failure> {
    progress::until_ready(client, wanted.operators, wanted.timeout).await?;
    let mode = Mode { force: true, dry_run: false };
    let mut applied = Vec::new();
    for result in apply_all(client, wanted.namespace, wanted.manifests, mode).await? {
        let object = result?;
        say!("{} {}", object.resource.label(&object.name), object.change);
        applied.push(object);
    }
    progress::until_ready(client, &applied, wanted.timeout).await?;
    for object in &applied {
        show_addresses(client, object).await?;
    }
    Ok(())
}

/// Prints where the programs of an object answer.
async fn show_addresses(client: &Client, object: &Applied) -> Result<(), Failure> {
    let catalog = Catalog::of(client).await?;
    let owner =
        request::get(client, &object.resource.path(object.namespace.as_deref(), Some(&object.name)), &[]).await?;
    let mut rows = Vec::new();
    for pod in below(client, &catalog, &owner, "Pod").await? {
        let address = pod["status"]["podIP"].as_str().unwrap_or("no address");
        rows.push(address_row("pod", &pod, address, ports(&pod["spec"]["containers"], "ports", "containerPort")));
    }
    for service in below(client, &catalog, &owner, "Service").await? {
        let Some(address) = service["spec"]["clusterIP"].as_str().filter(|address| *address != "None") else {
            continue; // Headless: its Pods are the addresses.
        };
        let listed = serde_json::json!([{"ports": service["spec"]["ports"]}]);
        rows.push(address_row("service", &service, address, ports(&listed, "ports", "port")));
    }
    show!("{}", lay_out(&rows));
    Ok(())
}

fn address_row(kind: &str, object: &Value, address: &str, ports: Vec<String>) -> Vec<String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let addresses: Vec<String> = ports.iter().map(|port| format!("{address}:{port}")).collect();
    vec![format!("  {kind}/{name}"), if addresses.is_empty() { address.to_owned() } else { addresses.join(", ") }]
}

fn ports(holders: &Value, list: &str, member: &str) -> Vec<String> {
    let holders = holders.as_array().into_iter().flatten();
    let ports = holders.flat_map(|holder| holder[list].as_array().into_iter().flatten());
    ports.filter_map(|port| port[member].as_u64()).map(|port| port.to_string()).collect()
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
}
