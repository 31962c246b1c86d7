//! A cluster of its own for each test, driven by the real `windlass` and the real `kubectl`.
#![expect(dead_code, reason = "each test program uses a part of this")]

pub(crate) mod console;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that anything a test waits for may take; images may have to be made first.
const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(100);

/// The Memcached resource that the README starts with.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/memcached.yaml")
}

/// A cluster in a folder of its own; dropped, it is stopped and deleted.
pub(crate) struct TestCluster {
    pub(crate) dir: tempfile::TempDir,
    /// Whether `windlass` runs without any of the rights of root, also when root runs the tests.
    ordinary: bool,
}

impl TestCluster {
    /// A folder without a cluster yet.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        Self { dir, ordinary: false }
    }

    /// A folder without a cluster yet, for `windlass` as someone who is not root.
    pub(crate) fn ordinary() -> Self {
        let mut cluster = Self::new();
        cluster.ordinary = true;
        cluster
    }

    /// A running cluster with the operators, and these arguments for `up`.
    pub(crate) fn up(arguments: &[&str]) -> Self {
        let cluster = Self::new();
        cluster.start(arguments);
        cluster
    }

    /// Starts the cluster in the background and gives what `up` printed.
    pub(crate) fn start(&self, arguments: &[&str]) -> String {
        success(self.windlass().args(["up", "--detach"]).args(arguments))
    }

    /// A running cluster with the README's example ready on it.
    pub(crate) fn with_example() -> Self {
        Self::up(&["-f", example().to_str().expect("a path in UTF-8")])
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The `windlass` command for this cluster.
    pub(crate) fn windlass(&self) -> Command {
        let mut command = self.program();
        command.arg("--dir").arg(self.state());
        command
    }

    /// The `windlass` command, which has not been told its folder.
    pub(crate) fn program(&self) -> Command {
        let windlass = env!("CARGO_BIN_EXE_windlass");
        let mut command = if self.ordinary {
            // Another user's number in a user namespace: the kernel takes every capability away on exec.
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-user=1000", "--map-group=1000", windlass]);
            command
        } else {
            Command::new(windlass)
        };
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// The `kubectl` command for this cluster.
    pub(crate) fn kubectl_command(&self) -> Command {
        let mut command = Command::new(kubectl());
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("KUBECONFIG", self.state().join("kubeconfig")).env("HOME", self.dir.path());
        command
    }

    /// Runs kubectl, which must succeed, and gives what it printed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        success(self.kubectl_command().args(arguments))
    }

    /// An object as JSON, or `None`.
    pub(crate) fn object(&self, resource: &str, name: &str) -> Option<Value> {
        let output = self.kubectl_command().args(["get", resource, name, "-o", "json"]).output().expect("kubectl runs");
        if output.status.success() { serde_json::from_slice(&output.stdout).ok() } else { None }
    }

    /// The items of a list as JSON.
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.kubectl(&[&["get", "-o", "json"], arguments].concat());
        let list: Value = serde_json::from_str(&text).expect("JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The Pods of the example that are ready and not on their way out.
    pub(crate) fn ready_pods(&self) -> Vec<Value> {
        self.list(&["pods"]).into_iter().filter(is_ready).collect()
    }

    /// Waits until exactly this many Pods are ready, and gives them.
    pub(crate) fn wait_for_pods(&self, count: usize) -> Vec<Value> {
        eventually(&format!("{count} ready Pods"), || {
            let all = self.list(&["pods"]);
            let ready: Vec<Value> = all.iter().filter(|pod| is_ready(pod)).cloned().collect();
            if all.len() == count && ready.len() == count { Ok(ready) } else { Err(summary(&all)) }
        })
    }

    /// The process that is the cluster.
    pub(crate) fn server_pid(&self) -> u32 {
        let text = success(self.windlass().arg("status"));
        let word = text.split("process ").nth(1).and_then(|rest| rest.split(',').next());
        word.and_then(|word| word.trim().parse().ok()).unwrap_or_else(|| panic!("no process in {text}"))
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        let log = std::fs::read_to_string(self.state().join("windlass.log")).unwrap_or_default();
        if std::thread::panicking() {
            eprintln!("--- the cluster's log ---\n{log}");
        }
        self.windlass().args(["down", "--purge"]).output().ok();
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    ready && pod["metadata"]["deletionTimestamp"].is_null()
}

fn summary(pods: &[Value]) -> String {
    let line = |pod: &Value| {
        format!("{} {} {}", pod["metadata"]["name"], pod["status"]["phase"], pod["status"]["containerStatuses"])
    };
    pods.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// kubectl of the pinned release, as `cargo xtask tools` builds it.
pub(crate) fn kubectl() -> PathBuf {
    if let Some(path) = std::env::var_os("WINDLASS_TEST_KUBECTL") {
        return PathBuf::from(path);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache"));
    let path = cache.join("windlass/tools/kubectl-1.36.3");
    assert!(path.is_file(), "no kubectl: run `cargo xtask tools` first");
    path
}

/// Runs a command that must succeed and gives its standard output.
pub(crate) fn success(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must fail and gives everything that it printed.
pub(crate) fn failure(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(!output.status.success(), "{command:?} succeeded:\n{}", text(&output));
    text(&output)
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Tries until it works; when patience ends, fails with the last reason.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(reason) => assert!(Instant::now() < deadline, "{what} did not come about: {reason}"),
        }
        std::thread::sleep(POLL);
    }
}

/// Says something to a memcached and gives its answer.
pub(crate) fn memcached(address: &str, line: &str, end: &str) -> Result<String, String> {
    let address: SocketAddr = address.parse().map_err(|error| format!("{address}: {error}"))?;
    let mut stream =
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(|error| format!("{address}: {error}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(|error| error.to_string())?;
    stream.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = String::new();
    let mut chunk = [0; 1024];
    while !answer.ends_with(end) {
        let length = stream.read(&mut chunk).map_err(|error| format!("{address}: {error} after {answer:?}"))?;
        if length == 0 {
            return Err(format!("{address} closed after {answer:?}"));
        }
        answer.push_str(&String::from_utf8_lossy(&chunk[..length]));
    }
    Ok(answer)
}

/// The host process of a Pod's memcached, which listens on the Pod's address alone.
pub(crate) fn listener(address: &str) -> Option<u32> {
    let (ip, port) = address.split_once(':')?;
    let octets: Vec<u8> = ip.split('.').filter_map(|part| part.parse().ok()).collect();
    let wanted = format!(
        "{:02X}{:02X}{:02X}{:02X}:{:04X}",
        octets[3],
        octets[2],
        octets[1],
        octets[0],
        port.parse::<u16>().ok()?
    );
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let row = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let inode = row
        .filter(|cells| cells.len() > 9 && cells[1] == wanted && cells[3] == "0A")
        .map(|cells| cells[9].to_owned())
        .next()?;
    let link = format!("socket:[{inode}]");
    let processes =
        std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.into_iter().find(|pid| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let is_memcached =
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "memcached");
        is_memcached
            && descriptors
                .into_iter()
                .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|target| target.to_string_lossy() == link))
    })
}
