//! Runs a program on the files of a stage, in the sandbox that Pods run in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::image::Progress;
use crate::sandbox::{ContainerSpec, Input, Launcher, Mount, Process, Report, Root, Running, Source};

/// How long one program may take.
const RUN_LIMIT: Duration = Duration::from_secs(3600);
/// A longer line of output is shown in pieces.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// Files of the machine that a program needs to find others on the network.
const NETWORK_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Runs a program; its changes are in the folder that this gives back, below `scratch`.
pub(super) async fn run(
    rootfs: &Path,
    scratch: &Path,
    process: Process,
    progress: Progress<'_>,
) -> Result<PathBuf, String> {
    let launcher = Launcher::default();
    let capabilities = launcher.probe(scratch).await.map_err(|error| format!("start a sandbox: {error}"))?;
    if !capabilities.namespaces || !capabilities.writable_root {
        return Err(format!("RUN needs a sandbox: {}", capabilities.missing().join("; ")));
    }
    let spec = ContainerSpec {
        hostname: "build".to_owned(),
        root: Root::Image(rootfs.to_owned()),
        scratch: scratch.to_owned(),
        read_only_root: false,
        mounts: NETWORK_FILES.iter().filter(|path| Path::new(path).is_file()).map(|path| network_file(path)).collect(),
        process,
        address: None,
        input: Input::Nothing,
        keep: None,
        neighbour: None,
        settings: Vec::new(),
        group: None,
        network: None,
        contained: None,
        nice: 0,
        ask_of_files: false,
        faults: Default::default(),
    };
    let mut running =
        launcher.container("image build", &spec).await.map_err(|error| format!("start a sandbox: {error}"))?;
    let output = running.take_output();
    let told = async {
        if let Some((stdout, stderr)) = output {
            tokio::join!(tell(stdout, progress), tell(stderr, progress));
        }
    };
    let ended = tokio::time::timeout(RUN_LIMIT, async { tokio::join!(exit_code(&mut running), told).0 }).await;
    match ended {
        Ok(Ok(0)) => Ok(scratch.join("upper")),
        Ok(Ok(code)) => Err(format!("the program ended with code {code}")),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("the program took longer than {} minutes", RUN_LIMIT.as_secs() / 60)),
    }
}

fn network_file(path: &str) -> Mount {
    Mount { source: Source::Bind(path.into()), target: path.into(), read_only: true }
}

async fn exit_code(running: &mut Running) -> Result<i32, String> {
    loop {
        match running.next_report().await {
            Report::Exited(code) => {
                running.gone().await;
                return Ok(code);
            }
            Report::Failed(why) => return Err(why),
            Report::Started { .. } | Report::Attached(_) | Report::Notice(_) | Report::Suffers { .. } => {}
        }
    }
}

async fn tell(output: impl AsyncRead + Unpin, progress: Progress<'_>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut output).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
        progress(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}
