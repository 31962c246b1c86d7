//! Real programs in real sandboxes. This program is its own sandbox process and its own test subject, so it has its
//! own `main`: `cargo test -p windlass-node --test sandbox [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

use std::future::Future;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use windlass_node::sandbox::{
    ContainerSpec, ExecSpec, Identity, Input, Keep, Launcher, Mount, Origin, Process, Report, Request, Rights, Root,
    Running, Source, attach,
};

const LIMIT: Duration = Duration::from_secs(90);
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 126, 200, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 126, 200, 2);

type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

const TESTS: &[Test] = &[
    ("a_program_runs_as_process_two_and_its_code_is_reported", || Box::pin(exit_code())),
    ("a_missing_program_is_a_clear_failure", || Box::pin(missing_program())),
    ("two_pods_listen_on_the_same_port", || Box::pin(same_port())),
    ("a_port_below_1024_is_reached_in_the_pod", || Box::pin(low_port())),
    ("volumes_are_mounted_and_protected", || Box::pin(volumes())),
    ("a_program_joins_a_running_container", || Box::pin(exec())),
    ("signals_reach_the_program", || Box::pin(signals())),
    ("nothing_is_left_when_the_supervisor_is_killed", || Box::pin(supervisor_killed())),
    ("nothing_is_left_when_the_node_lets_go", || Box::pin(dropped())),
    ("a_container_outlives_its_node_and_the_next_one_finds_it", || Box::pin(outlived())),
    ("a_container_that_ends_alone_is_told_of_to_the_next_node", || Box::pin(ended_alone())),
    ("a_container_that_no_node_comes_for_ends", || Box::pin(abandoned())),
    ("nothing_is_left_when_the_program_ends_before_its_children", || Box::pin(program_ended())),
];

fn main() {
    windlass_node::sandbox_entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["listen", port] => listen(port.parse().unwrap()),
        ["node", directory, limit] => be_node(Path::new(directory), Duration::from_millis(limit.parse().unwrap())),
        _ => run_tests(arguments.iter().find(|argument| !argument.starts_with('-')).map(String::as_str)),
    }
}

fn run_tests(filter: Option<&str>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let capabilities = runtime.block_on(Launcher::default().probe(&std::env::temp_dir())).unwrap();
    if !capabilities.namespaces {
        println!("skipped: {}", capabilities.missing().join("; "));
        return;
    }
    let chosen: Vec<&Test> = TESTS.iter().filter(|(name, _)| filter.is_none_or(|f| name.contains(f))).collect();
    println!("running {} tests", chosen.len());
    for (name, test) in &chosen {
        runtime.block_on(async { tokio::time::timeout(LIMIT, test()).await }).expect(name);
        println!("test {name} ... ok");
    }
    println!("test result: ok. {} passed", chosen.len());
}

/// Listens on all addresses, asks itself by localhost, says where it is, and answers for ever.
fn listen(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    let local = listener.local_addr().unwrap();
    assert!(TcpListener::bind("[::]:0").is_err(), "IPv6 must look absent");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let peer = stream.peer_addr().unwrap();
            stream.write_all(format!("{local} sees {peer}").as_bytes()).unwrap();
        }
    });
    println!("self: {}", ask((Ipv4Addr::LOCALHOST, port).into()));
    println!("listening");
    std::thread::park();
}

fn ask(address: SocketAddr) -> String {
    let mut text = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn spec(scratch: &Path, argv: &[&str]) -> ContainerSpec {
    ContainerSpec {
        hostname: "box".to_owned(),
        root: Root::Host,
        scratch: scratch.to_owned(),
        read_only_root: false,
        mounts: Vec::new(),
        process: Process {
            argv: argv.iter().map(|&part| part.to_owned()).collect(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            workdir: PathBuf::from("/"),
            user: Identity::default(),
            rights: Rights::default(),
        },
        address: Some(FIRST),
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
    }
}

async fn start(spec: &ContainerSpec) -> (Running, i32) {
    let mut running = Launcher::default().container("test", spec).await.unwrap();
    match running.next_report().await {
        Report::Started { init } => (running, init),
        other => panic!("{other:?}"),
    }
}

/// Runs a shell command to its end: its code and output.
async fn shell(spec: &ContainerSpec) -> (i32, String) {
    let (mut running, _) = start(spec).await;
    let (mut stdout, mut stderr) = running.take_output().unwrap();
    let code = loop {
        if let Report::Exited(code) = running.next_report().await {
            break code;
        }
    };
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    stderr.read_to_string(&mut text).await.unwrap();
    (code, text)
}

/// Starts a container that can outlive it, says so, and waits to be killed.
fn be_node(directory: &Path, limit: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let script = "echo before; until test -e /data/go; do sleep 0.05; done; echo after; exit 5";
        let data = Source::Bind(directory.join("data"));
        let keep = Keep { limit, origin: Origin { image_id: "image".to_owned(), stop_signal: 15 } };
        let spec = ContainerSpec {
            mounts: vec![Mount { source: data, target: PathBuf::from("/data"), read_only: false }],
            keep: Some(keep),
            ..spec(&directory.join("run"), &["sh", "-c", script])
        };
        let (_running, init) = start(&spec).await;
        println!("{init}");
        std::future::pending::<()>().await;
    });
}

/// A container whose node is dead: its directory and its first process.
fn orphan(limit: &str) -> (tempfile::TempDir, i32) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("data")).unwrap();
    let mut node = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["node", directory.path().to_str().unwrap(), limit])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(node.stdout.take().unwrap()), &mut line).unwrap();
    node.kill().unwrap();
    node.wait().unwrap();
    (directory, line.trim().parse().unwrap())
}

/// What is left of a container's output, and its code.
async fn last_words(mut running: Running) -> (i32, String) {
    let (mut stdout, _stderr) = running.take_output().unwrap();
    let report = running.next_report().await;
    let Report::Exited(code) = report else { panic!("{report:?}") };
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    (code, text)
}

async fn outlived() {
    let (directory, init) = orphan("60000");
    let (running, attachment) = attach(&directory.path().join("run")).await.unwrap();
    assert_eq!((attachment.init, attachment.spec.hostname.as_str()), (init, "box"));
    assert_eq!(attachment.spec.keep.unwrap().origin.image_id, "image");
    std::fs::write(directory.path().join("data/go"), "").unwrap();
    assert_eq!(last_words(running).await, (5, "before\nafter\n".to_owned()));
}

async fn ended_alone() {
    let (directory, init) = orphan("60000");
    std::fs::write(directory.path().join("data/go"), "").unwrap();
    until_gone(init).await;
    let (running, _) = attach(&directory.path().join("run")).await.unwrap();
    assert_eq!(last_words(running).await, (5, "before\nafter\n".to_owned()));
    assert!(attach(&directory.path().join("run")).await.is_err(), "it was told of once");
}

async fn abandoned() {
    let (directory, init) = orphan("100");
    until_gone(init).await;
    assert!(attach(&directory.path().join("run")).await.is_err());
}

/// Waits until a process of no other meaning has ended; its parent may still have to hear of it.
async fn until_gone(process: i32) {
    let state = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    while !state().is_empty() && !state().contains(") Z") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) =
        shell(&spec(dir.path(), &["sh", "-c", "echo $$ $(cat /proc/sys/kernel/hostname); exit 7"])).await;
    assert_eq!((code, text.trim()), (7, "2 box"));
}

async fn missing_program() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = Launcher::default().container("test", &spec(dir.path(), &["/no/such"])).await.unwrap();
    let report = running.next_report().await;
    let Report::Failed(why) = &report else { panic!("{report:?}") };
    assert!(why.contains("/no/such") && why.contains("No such file"), "{why}");
}

async fn same_port() {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let mut running = Vec::new();
    for address in [FIRST, SECOND] {
        let dir = tempfile::tempdir().unwrap();
        let spec = ContainerSpec { address: Some(address), ..spec(dir.path(), &[program, "listen", "18080"]) };
        let (mut container, _) = start(&spec).await;
        let (stdout, _stderr) = container.take_output().unwrap();
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
        let itself = lines.next_line().await.unwrap().unwrap();
        assert!(itself.starts_with(&format!("self: {address}:18080 sees {address}:")), "{itself}");
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "listening");
        running.push((container, dir));
    }
    for address in [FIRST, SECOND] {
        let answer = tokio::task::spawn_blocking(move || ask((address, 18080).into())).await.unwrap();
        assert!(answer.starts_with(&address.to_string()), "{answer}");
    }
}

async fn volumes() {
    let dir = tempfile::tempdir().unwrap();
    let (data, config) = (dir.path().join("data"), dir.path().join("config"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("key"), "value").unwrap();
    let bind = |source: &Path, target: &str, read_only| Mount {
        source: Source::Bind(source.to_owned()),
        target: PathBuf::from(target),
        read_only,
    };
    let mounts = vec![bind(&data, "/data", false), bind(&config, "/etc/new/config", true)];
    let script = "cat /etc/new/config/key; echo new > /data/file; touch /etc/new/config/x 2>/dev/null || echo refused";
    let spec = ContainerSpec { mounts, ..spec(&dir.path().join("run"), &["sh", "-c", script]) };
    assert_eq!(shell(&spec).await, (0, "valuerefused\n".to_owned()));
    assert_eq!(std::fs::read_to_string(data.join("file")).unwrap(), "new\n");
    assert!(!Path::new("/etc/new").exists(), "the host is as it was");
}

async fn exec() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), &["sleep", "1000"]);
    let (running, init) = start(&spec).await;
    let command = ["sh", "-c", "test \"$(cat /proc/2/comm)\" = sleep"].map(str::to_owned).to_vec();
    let process = Process { argv: command, ..spec.process.clone() };
    let mut exec = ExecSpec {
        init,
        supervisor: running.supervisor(),
        process,
        address: spec.address,
        input: Input::Nothing,
        group: None,
        network: None,
        contained: None,
        faults: Default::default(),
    };
    let result = async |exec: &ExecSpec| {
        let mut program = Launcher::default().exec("test", exec).await.unwrap();
        loop {
            match program.next_report().await {
                Report::Started { .. } | Report::Notice(_) => {}
                last => return last,
            }
        }
    };
    assert_eq!(result(&exec).await, Report::Exited(0));
    exec.supervisor += 1;
    let report = result(&exec).await;
    assert!(matches!(&report, Report::Failed(why) if why.contains("has ended")), "{report:?}");
}

async fn signals() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let (mut running, _) = start(&spec(dir.path(), &["sh", "-c", script])).await;
    let (mut stdout, _stderr) = running.take_output().unwrap();
    stdout.read_u8().await.unwrap();
    running.request(Request::Signal(15)).await;
    assert_eq!(running.next_report().await, Report::Exited(5));
}

/// A command that leaves a grandchild in a session of its own, with an argument found nowhere else on the machine.
fn marked() -> (String, String) {
    let mark = format!("9{:09}.5", std::process::id() as u64 * 1000 + u64::from(rand::random::<u16>() % 1000));
    (format!("setsid sleep {mark} & echo started; sleep {mark}"), mark)
}

fn count(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let parts: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        parts.first() == Some(&&b"sleep"[..]) && parts.get(1) == Some(&mark.as_bytes())
    };
    processes.filter(has).count()
}

async fn until_count(mark: &str, expect: usize) {
    let begun = Instant::now();
    while count(mark) != expect {
        assert!(begun.elapsed() < LIMIT, "{} processes are left", count(mark));
        tokio::task::yield_now().await;
    }
}

async fn started_marked() -> (Running, String, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (script, mark) = marked();
    let (running, _) = start(&spec(dir.path(), &["sh", "-c", &script])).await;
    until_count(&mark, 2).await;
    (running, mark, dir)
}

async fn supervisor_killed() {
    let (mut running, mark, _dir) = started_marked().await;
    let supervisor = rustix::process::Pid::from_raw(running.supervisor()).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    assert_eq!(running.next_report().await, Report::Exited(137));
    until_count(&mark, 0).await;
}

async fn dropped() {
    let (running, mark, _dir) = started_marked().await;
    drop(running);
    until_count(&mark, 0).await;
}

async fn program_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (script, mark) = marked();
    let script = script.replace("; sleep", "; exit 0; sleep");
    assert_eq!(shell(&spec(dir.path(), &["sh", "-c", &script])).await.0, 0);
    until_count(&mark, 0).await;
}

/// Asks a server that could not have its port below 1024; root can have it, and then it is the port itself.
async fn low_port() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import socket,threading\ns=socket.socket(); s.bind(('0.0.0.0',81)); s.listen()\n\
                  threading.Thread(target=lambda: [s.accept()[0].sendall(b'hi') for _ in range(2)], daemon=True).start()\n\
                  for t in (None, 5):\n  print(socket.create_connection(('localhost',81), t).recv(2).decode())";
    let spec = spec(dir.path(), &["python3", "-c", script]);
    let (code, text) = shell(&spec).await;
    assert_eq!((code, text.as_str()), (0, "hi\nhi\n"));
}
