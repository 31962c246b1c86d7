//! Runs one command in a sandbox on the host's files: `cargo run -p windlass-node --example sandbox -- 127.64.128.1 /bin/sh -c id`.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use tokio::io::copy;
use windlass_node::sandbox::{ContainerSpec, Identity, Launcher, Process, Report, Rights, Root};

fn main() -> std::io::Result<()> {
    windlass_node::sandbox_entry();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address: Option<Ipv4Addr> = arguments.next().and_then(|address| address.parse().ok());
    let directory = tempfile::tempdir()?;
    let launcher = Launcher::default();
    eprintln!("{:?}", launcher.probe(directory.path()).await?);
    let spec = ContainerSpec {
        hostname: "sandbox".to_owned(),
        root: std::env::var_os("ROOTFS").map_or(Root::Host, |root| Root::Image(PathBuf::from(root))),
        scratch: directory.path().to_owned(),
        read_only_root: false,
        mounts: Vec::new(),
        process: Process {
            argv: arguments.collect(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            workdir: PathBuf::from("/"),
            user: Identity::default(),
            rights: Rights::default(),
        },
        address,
        input: windlass_node::sandbox::Input::Nothing,
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
    let mut running = launcher.container("example", &spec).await?;
    let (mut stdout, mut stderr) = running.take_output().expect("the output was not taken before");
    tokio::spawn(async move { copy(&mut stderr, &mut tokio::io::stderr()).await });
    let output = tokio::spawn(async move { copy(&mut stdout, &mut tokio::io::stdout()).await });
    loop {
        let report = running.next_report().await;
        eprintln!("{report:?}");
        if matches!(report, Report::Exited(_) | Report::Failed(_)) {
            running.gone().await;
            let _ = output.await;
            return Ok(());
        }
    }
}
