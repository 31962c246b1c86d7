//! A server under test: Windlass, or kube-apiserver with etcd, with keys of the same kind and the same data directory rules.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use windlass_kubernetes::{Admission, Keys, Place, free_port};

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
        let (server, pki) = (format!("https://{}:{port}", address.trim()), keys(programs)?.join("pki"));
        Self::ready(programs, command, Vec::new(), Credentials { server, pki })
    }

    fn real(programs: &Programs, durable: bool) -> Result<Self> {
        let place = place(programs, durable)?;
        let log = |name: &str| place.folder.join(format!("{name}.log"));
        let etcd = Process::start(quiet(&mut place.etcd_command(&programs.etcd), &log("etcd"))?)?;
        await_port(place.etcd[0])?;
        let mut command = place.api_server_command(&programs.kube_apiserver, Admission::WithoutAccounts);
        quiet(&mut command, &log("kube-apiserver"))?;
        Self::ready(programs, command, vec![etcd], Credentials { server: place.server(), pki: place.keys })
    }

    fn ready(
        programs: &Programs,
        mut command: Command,
        mut others: Vec<Process>,
        credentials: Credentials,
    ) -> Result<Self> {
        let load = Load::new(&programs.load, credentials);
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

/// Where the real one is, with keys of the kind that Windlass makes.
pub(super) fn place(programs: &Programs, durable: bool) -> Result<Place> {
    let folder = programs.fresh("real", durable)?;
    let keys = Keys::make(&folder.join("pki"), &[Ipv4Addr::LOCALHOST])?.folder().to_owned();
    let etcd = [free_port()?, free_port()?];
    let services = "10.0.0.0/24".to_owned();
    Ok(Place { folder, keys, address: Ipv4Addr::LOCALHOST, port: free_port()?, etcd, services })
}

/// The keys of Windlass; made once.
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
