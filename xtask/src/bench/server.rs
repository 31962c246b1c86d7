//! A server under test: Windlass, or kube-apiserver with etcd, with the same keys and the same data directory rules.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};

use super::load::{Credentials, Load};
use super::process::Process;
use super::programs::Programs;

/// How long etcd may take until it accepts connections.
const ETCD_TIME_MAX: Duration = Duration::from_secs(60);
/// How often it looks whether a server that starts is still there.
const POLL: Duration = Duration::from_millis(20);
/// How long memory gets to settle before it is read.
const SETTLE: Duration = Duration::from_secs(2);

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Windlass,
    Real,
}

/// A running server.
pub(super) struct Server {
    processes: Vec<Process>,
    pub(super) load: Load,
    /// From the start of the process to ready.
    pub(super) start_s: f64,
    /// The processor time of the API server's process by then.
    pub(super) start_cpu_s: f64,
}

impl Server {
    /// A server with nothing in it; when this returns, it is ready.
    pub(super) fn start(programs: &Programs, side: Side, durable: bool) -> Result<Self> {
        match side {
            Side::Windlass => Self::windlass(programs, durable, &["--profile", "bare"]),
            Side::Real => Self::real(programs, durable),
        }
    }

    /// The process of the API server.
    pub(super) fn process(&self) -> &Process {
        &self.processes[0]
    }

    /// Resident memory of all its processes, in bytes.
    pub(super) fn memory(&self) -> Result<f64> {
        std::thread::sleep(SETTLE);
        self.processes.iter().map(Process::memory).sum()
    }

    /// Processor time of all its processes so far, in seconds.
    pub(super) fn cpu(&self) -> Result<f64> {
        self.processes.iter().map(Process::cpu).sum()
    }

    /// Windlass with these arguments of `serve`.
    pub(super) fn windlass(programs: &Programs, durable: bool, arguments: &[&str]) -> Result<Self> {
        let dir = programs.fresh("windlass", durable)?;
        // Keys and address are there already, as they are on the other side.
        for file in ["pki", "address"] {
            copy(&keys(programs)?.join(file), &dir.join(file))?;
        }
        let address = fs::read_to_string(keys(programs)?.join("server"))?;
        let port = free_port()?;
        let mut command = Command::new(&programs.windlass);
        command.arg("--dir").arg(&dir).args(["serve", "--port", &port.to_string()]).args(arguments);
        quiet(&mut command, &dir.join("windlass.log"))?;
        Self::ready(programs, command, Vec::new(), &format!("https://{}:{port}", address.trim()))
    }

    fn real(programs: &Programs, durable: bool) -> Result<Self> {
        let (dir, pki) = (programs.fresh("real", durable)?, keys(programs)?.join("pki"));
        let (client, peer, port) = (free_port()?, free_port()?, free_port()?);
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let mut etcd = Command::new(&programs.etcd);
        etcd.args(["--name=bench", "--log-level=error"])
            .arg(format!("--data-dir={}", dir.join("etcd").display()))
            .arg(format!("--listen-client-urls={}", url(client)))
            .arg(format!("--advertise-client-urls={}", url(client)))
            .arg(format!("--listen-peer-urls={}", url(peer)))
            .arg(format!("--initial-advertise-peer-urls={}", url(peer)))
            .arg(format!("--initial-cluster=bench={}", url(peer)));
        let etcd = Process::start(quiet(&mut etcd, &dir.join("etcd.log"))?)?;
        await_port(client)?;
        let file = |name: &str| pki.join(name).display().to_string();
        let mut command = Command::new(&programs.kube_apiserver);
        command
            .arg(format!("--etcd-servers={}", url(client)))
            .args(["--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"])
            .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={}", dir.join("certs").display()))
            .arg(format!("--tls-cert-file={}", file("server.crt")))
            .arg(format!("--tls-private-key-file={}", file("server.key")))
            .arg(format!("--client-ca-file={}", file("ca.crt")))
            // Any pair will do, as nobody asks for tokens; it takes public keys from certificates.
            .arg(format!("--service-account-key-file={}", file("server.crt")))
            .arg(format!("--service-account-signing-key-file={}", file("server.key")));
        quiet(&mut command, &dir.join("kube-apiserver.log"))?;
        Self::ready(programs, command, vec![etcd], &format!("https://127.0.0.1:{port}"))
    }

    fn ready(programs: &Programs, mut command: Command, mut others: Vec<Process>, url: &str) -> Result<Self> {
        let pki = keys(programs)?.join("pki");
        let load = Load::new(&programs.load, Credentials { server: url.to_owned(), pki });
        // The one that waits is there before the one that it waits for.
        let mut waiting = load.begin_ready()?;
        let begin = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64();
        let mut process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        while !waiting.is_over()? {
            if process.is_over()? {
                waiting.give_up()?;
                bail!(
                    "{:?} ended before it was ready; its log is in {}",
                    command.get_program(),
                    programs.work.display()
                );
            }
            // The moment of being ready is noted by the one that waits.
            std::thread::sleep(POLL);
        }
        let ready_at = waiting.end()?["at_s"].as_f64().context("the load generator says when")?;
        let start_cpu_s = process.cpu()?;
        others.insert(0, process);
        Ok(Self { processes: others, load, start_s: ready_at - begin, start_cpu_s })
    }
}

/// The keys of both sides, as Windlass makes them; made once.
fn keys(programs: &Programs) -> Result<PathBuf> {
    let dir = programs.work.join("keys");
    if dir.join("server").exists() {
        return Ok(dir);
    }
    let port = free_port()?;
    let mut command = Command::new(&programs.windlass);
    command.arg("--dir").arg(&dir).args(["serve", "--profile", "bare", "--port", &port.to_string()]);
    let process = Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
    let begin = Instant::now();
    let address = loop {
        let text = fs::read_to_string(dir.join("kubeconfig")).unwrap_or_default();
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server: https://"));
        if let Some((host, _)) = server.and_then(|server| server.rsplit_once(':')) {
            break host.to_owned();
        }
        if begin.elapsed() > ETCD_TIME_MAX {
            bail!("windlass did not start; try `windlass serve --profile bare`");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    drop(process);
    fs::write(dir.join("server"), address)?;
    Ok(dir)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if !status.success() {
        bail!("cannot copy {}", from.display());
    }
    Ok(())
}

/// Nothing on the screen; errors go to a file.
pub(super) fn quiet<'a>(command: &'a mut Command, log: &Path) -> Result<&'a mut Command> {
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn await_port(port: u16) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < ETCD_TIME_MAX {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("etcd does not accept connections; its log is in target/bench/real/etcd.log")
}
