//! API servers to compare: the real kube-apiserver with etcd, and Windlass, started with the same flags.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::{Client, Config};
use windlass_kubernetes::{Admission, Keys, Place, Process, free_port};

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

/// A running API server, which ends with this value: first the server, then etcd, then its files.
pub(crate) struct ControlPlane {
    /// How it is called in reports.
    pub(crate) name: &'static str,
    /// Its clients are administrators.
    pub(crate) client: Client,
    /// The etcd behind it, if there is one.
    pub(crate) etcd: Option<Client>,
    server: Process,
    _etcd: Option<Process>,
    _folder: tempfile::TempDir,
}

/// The real thing: etcd and kube-apiserver of the pinned release.
pub(crate) async fn kubernetes(programs: &Programs) -> Result<ControlPlane> {
    let folder = tempfile::tempdir()?;
    let place = place(folder.path())?;
    let etcd = Process::start(&mut place.etcd_command(&programs.etcd), &folder.path().join("etcd.log"))?;
    // It signs its own writes with the name of its program.
    let program = folder.path().join("kube-apiserver");
    std::os::unix::fs::symlink(fs::canonicalize(&programs.kube_apiserver)?, &program)?;
    let url = format!("http://127.0.0.1:{}", place.etcd[0]).parse()?;
    let mut plane = start("kubernetes", &program, &place, folder).await?;
    plane._etcd = Some(etcd);
    plane.etcd = Some(Client::try_from(Config::new(url))?);
    Ok(plane)
}

/// Windlass as `windlass envtest` presents it.
pub(crate) async fn windlass(programs: &Programs) -> Result<ControlPlane> {
    let folder = tempfile::tempdir()?;
    let place = place(folder.path())?;
    start("windlass", programs.windlass.as_ref().context("say where Windlass is")?, &place, folder).await
}

fn place(folder: &Path) -> Result<Place> {
    let keys = Keys::make(&folder.join("pki"), &[Ipv4Addr::LOCALHOST])?;
    Ok(Place {
        folder: folder.to_owned(),
        keys: keys.folder().to_owned(),
        address: Ipv4Addr::LOCALHOST,
        port: free_port()?,
        etcd: [free_port()?, free_port()?],
        services: "10.0.0.0/24".to_owned(),
    })
}

async fn start(name: &'static str, program: &Path, place: &Place, folder: tempfile::TempDir) -> Result<ControlPlane> {
    let (tokens, log) = (place.folder.join("tokens.csv"), place.folder.join("server.log"));
    fs::write(&tokens, format!("{TOKEN},comparison,comparison,\"system:masters\"\n"))?;
    let mut command = place.api_server_command(program, Admission::WithoutAccounts);
    command.arg(format!("--token-auth-file={}", tokens.display()));
    let server = Process::start(&mut command, &log).with_context(|| format!("cannot start {name}"))?;
    let mut config = Config::new(place.server().parse()?);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(TOKEN.to_owned().into());
    let client = Client::try_from(config)?;
    let mut plane = ControlPlane { name, client, etcd: None, server, _etcd: None, _folder: folder };
    plane.wait(&log).await?;
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
            if self.server.is_over() || Instant::now() > deadline {
                bail!("{} is not ready; it said:\n{}", self.name, fs::read_to_string(log).unwrap_or_default());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
