//! apt with a state of its own, so that any user can ask it and download with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::Progress;
use super::debian::{ASSUMED, BASE};
use super::store::{ImageError, ImageStore, doing};

/// Lists of packages older than this are fetched again.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// What is kept of what a program says about its failure.
const OUTPUT_BYTES_MAX: usize = 2000;

/// apt with a state of its own inside the store, usable by any user.
pub(crate) struct Apt {
    directory: PathBuf,
    /// Taken from the host if no mirror can be reached.
    host_lists: AtomicBool,
    _lock: fs::File,
}

impl Apt {
    /// Opens it for someone who wants these packages.
    pub(crate) async fn open(store: &ImageStore, wanted: &[&str]) -> Result<Self, ImageError> {
        let lock = store.lock_file("apt").await?;
        let directory = store.directory().join("apt");
        let prepare = || -> io::Result<()> {
            for part in ["state/lists/partial", "cache/archives/partial", "none/partial"] {
                fs::create_dir_all(directory.join(part))?;
            }
            fs::write(directory.join("state/status"), assumed_status(wanted))
        };
        prepare().map_err(doing(format!("prepare {}", directory.display())))?;
        Ok(Self { directory, host_lists: false.into(), _lock: lock })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let state = self.directory.join("state");
        let option = |key: &str, value: &Path| format!("{key}={}", value.display());
        command.args(["-o", &option("Dir::State", &state), "-o", &option("Dir::State::status", &state.join("status"))]);
        command.args(["-o", &option("Dir::Cache", &self.directory.join("cache"))]);
        command.args(["-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none", "-o", "APT::Get::Assume-Yes=true"]);
        // Hooks of the host (cleaning its cache, telling its desktop) are not ours to run.
        command.args([
            "-o",
            "APT::Update::Post-Invoke=",
            "-o",
            "DPkg::Post-Invoke=",
            "-o",
            "APT::Keep-Downloaded-Packages=true",
        ]);
        if self.host_lists.load(Ordering::Relaxed) {
            command.args(["-o", "Dir::State::lists=/var/lib/apt/lists", "-o", "Debug::NoLocking=true"]);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Fetches the lists of packages if they are old; falls back to those of the host.
    pub(crate) async fn update(&self) -> Result<(), ImageError> {
        let stamp = self.directory.join("updated");
        let age = fs::metadata(&stamp)
            .and_then(|m| m.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age < LISTS_AGE_MAX) {
            return Ok(());
        }
        let mut command = self.command("apt-get");
        command.args(["-q", "-o", "Acquire::http::Timeout=20", "-o", "APT::Update::Error-Mode=any", "update"]);
        match output(command, "fetch the lists of Debian packages").await {
            Ok(_) => fs::write(&stamp, "").map_err(doing(format!("write {}", stamp.display()))),
            Err(error) => {
                // One broken third-party source must not hide the packages of the others.
                let usable = self.version("libc6").await.is_ok_and(|found| found.is_some());
                self.host_lists.store(!usable, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// The version of a package that would be installed; none if it does not exist.
    pub(crate) async fn version(&self, package: &str) -> Result<Option<String>, ImageError> {
        let mut command = self.command("apt-cache");
        command.args(["policy", package]);
        let text = output(command, "look for the package").await?;
        let candidate = text.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(str::to_owned))
    }

    /// Downloads packages with their dependencies; the archives, in order.
    pub(crate) async fn download(&self, wanted: &[&str], progress: Progress<'_>) -> Result<Vec<PathBuf>, ImageError> {
        let packages = || BASE.iter().copied().chain(wanted.iter().copied());
        let mut command = self.command("apt-get");
        // What is in the archive directory already is not listed: the list is made with an empty one.
        command.arg("-o").arg(format!("Dir::Cache::archives={}", self.directory.join("none").display()));
        command.args(["-qq", "--no-install-recommends", "--print-uris", "install"]).args(packages());
        let uris = output(command, "work out the dependencies").await?;
        let names: Vec<&str> = uris.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        progress(format!("downloading {} packages", names.len()));
        let mut command = self.command("apt-get");
        command.args(["-q", "--no-install-recommends", "--download-only", "-o", "APT::Status-Fd=1", "install"]);
        command.args(packages()).stdout(Stdio::piped()).stderr(Stdio::piped());
        watch_download(command, progress).await?;
        Ok(names.iter().map(|name| self.directory.join("cache/archives").join(name)).collect())
    }
}

async fn watch_download(mut command: Command, progress: Progress<'_>) -> Result<(), ImageError> {
    const STEP: &str = "download packages";
    let mut child = command.spawn().map_err(doing("run apt-get"))?;
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let stderr = child.stderr.take().expect("standard error is a pipe");
    let errors = tokio::spawn(async move {
        let mut text = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(
            &mut tokio::io::AsyncReadExt::take(stderr, OUTPUT_BYTES_MAX as u64),
            &mut text,
        )
        .await;
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(percent) = line.strip_prefix("dlstatus:").and_then(|rest| rest.split(':').nth(1)) {
            progress(format!("downloading packages: {}%", percent.split('.').next().unwrap_or(percent)));
        }
    }
    let status = child.wait().await.map_err(doing("run apt-get"))?;
    let errors = errors.await.unwrap_or_default();
    if status.success() { Ok(()) } else { Err(ImageError::Tool { step: STEP, output: errors.trim().to_owned() }) }
}

async fn output(mut command: Command, step: &'static str) -> Result<String, ImageError> {
    let done = match command.output().await {
        Ok(done) => done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ImageError::NotFound(
                "images are made from Debian packages, but this machine has no apt: add the image from an archive or directory \
                 with `windlass image add NAME PATH`"
                    .to_owned(),
            ));
        }
        Err(error) => return Err(doing(step)(error)),
    };
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said: String = said.trim().chars().take(OUTPUT_BYTES_MAX).collect();
    Err(ImageError::Tool { step, output: said })
}

fn assumed_status(wanted: &[&str]) -> String {
    let entry = |package: &&str| {
        // Only `allowed` satisfies a dependency on `perl:any`.
        let multi = if *package == "perl" { "allowed" } else { "foreign" };
        let provides = if *package == "debconf" { "Provides: debconf-2.0\n" } else { "" };
        format!(
            "Package: {package}\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: {multi}\nVersion: 9999\n\
             {provides}Description: assumed\n\n"
        )
    };
    ASSUMED.iter().filter(|package| !wanted.contains(package)).map(entry).collect()
}
