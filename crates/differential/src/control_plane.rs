//! API servers to compare: the real kube-apiserver with etcd, and Windlass, started with the same flags.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::{Client, Config};

/// How long a server may take until it is ready.
const START_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// The one token that both servers know; it stands for an administrator.
const TOKEN: &str = "the-token-of-the-comparison";

/// The programs that are compared.
#[derive(clap::Args)]
pub(crate) struct Programs {
    /// The kube-apiserver that `windlass envtest` makes.
    #[arg(long, required_unless_present = "record")]
    windlass: Option<PathBuf>,
    /// The real kube-apiserver.
    #[arg(long)]
    kube_apiserver: PathBuf,
    /// The etcd for the real kube-apiserver.
    #[arg(long)]
    etcd: PathBuf,
}

/// A running API server, which ends with this value.
pub(crate) struct ControlPlane {
    /// How it is called in reports.
    pub(crate) name: &'static str,
    /// Its clients are administrators.
    pub(crate) client: Client,
    /// The etcd behind it, if there is one.
    pub(crate) etcd: Option<Client>,
    processes: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

/// The real thing: etcd and kube-apiserver of the pinned release.
pub(crate) async fn kubernetes(programs: &Programs) -> Result<ControlPlane> {
    let folder = tempfile::tempdir()?;
    let (clients, peers) = (address(free_port()?), address(free_port()?));
    let etcd = Command::new(&programs.etcd)
        .arg("--data-dir")
        .arg(folder.path().join("etcd"))
        .args([format!("--listen-client-urls=http://{clients}"), format!("--advertise-client-urls=http://{clients}")])
        .args([format!("--listen-peer-urls=http://{peers}"), "--log-level=error".to_owned()])
        .stderr(log(folder.path(), "etcd.log")?)
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start etcd")?;
    // It signs its own writes with the name of its program.
    let program = folder.path().join("kube-apiserver");
    std::os::unix::fs::symlink(fs::canonicalize(&programs.kube_apiserver)?, &program)?;
    let mut command = Command::new(program);
    command.arg(format!("--etcd-servers=http://{clients}"));
    let mut plane = start("kubernetes", command, folder, vec![etcd]).await?;
    plane.etcd = Some(Client::try_from(Config::new(format!("http://{clients}").parse()?))?);
    Ok(plane)
}

/// Windlass as `windlass envtest` presents it.
pub(crate) async fn windlass(programs: &Programs) -> Result<ControlPlane> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(programs.windlass.as_ref().context("say where Windlass is")?);
    command.arg("--etcd-servers=http://127.0.0.1:1");
    start("windlass", command, folder, Vec::new()).await
}

async fn start(
    name: &'static str,
    mut command: Command,
    folder: tempfile::TempDir,
    mut processes: Vec<Child>,
) -> Result<ControlPlane> {
    let (port, path) = (free_port()?, folder.path().to_path_buf());
    let [tokens, public_key, key] = credentials(&path)?;
    command
        .args([format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()])
        .arg(format!("--cert-dir={}", path.join("certificates").display()))
        .arg(format!("--token-auth-file={}", tokens.display()))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(format!("--service-account-key-file={}", public_key.display()))
        .arg(format!("--service-account-signing-key-file={}", key.display()))
        .args(["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--allow-privileged=true"])
        .args(["--service-cluster-ip-range=10.0.0.0/24", "--profiling=false"])
        .stdout(Stdio::null())
        .stderr(log(&path, "server.log")?);
    processes.push(command.spawn().with_context(|| format!("cannot start {name}"))?);
    let mut config = Config::new(format!("https://{}", address(port)).parse()?);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(TOKEN.to_owned().into());
    let client = Client::try_from(config)?;
    let mut plane = ControlPlane { name, client, etcd: None, processes, _folder: folder };
    plane.wait(&path.join("server.log")).await?;
    Ok(plane)
}

impl ControlPlane {
    async fn wait(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        loop {
            let ready = http::Request::get("/readyz").body(Vec::new())?;
            if self.client.request_text(ready).await.is_ok() {
                return Ok(());
            }
            let ended = self.processes.last_mut().is_some_and(|process| matches!(process.try_wait(), Ok(Some(_))));
            if ended || Instant::now() > deadline {
                bail!("{} is not ready; it said:\n{}", self.name, fs::read_to_string(log).unwrap_or_default());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The file of tokens, and the public and private key of service accounts.
fn credentials(folder: &Path) -> Result<[PathBuf; 3]> {
    let files = ["tokens.csv", "accounts.pub", "accounts.key"].map(|name| folder.join(name));
    let key = rcgen::KeyPair::generate()?;
    fs::write(&files[0], format!("{TOKEN},comparison,comparison,\"system:masters\"\n"))?;
    fs::write(&files[1], key.public_key_pem())?;
    fs::write(&files[2], key.serialize_pem())?;
    Ok(files)
}

fn log(folder: &Path, name: &str) -> Result<fs::File> {
    Ok(fs::File::create(folder.join(name))?)
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
