//! A cluster with one `PostgresCluster` on it, and what is done to its members.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{TestCluster, eventually};
use super::writer::Writer;

/// The namespace's cluster is always called so.
pub(crate) const NAME: &str = "db";

/// A cluster of machines with a cluster of servers.
pub(crate) struct Stage {
    pub(crate) machine: TestCluster,
    begun: Instant,
}

/// A signal for all processes of a member.
#[derive(Clone, Copy)]
pub(crate) enum Blow {
    Kill,
    Freeze,
    Thaw,
}

impl Stage {
    /// Starts the machines, with the operators and nothing else.
    pub(crate) fn new() -> Self {
        let begun = Instant::now();
        let stage = Self { machine: TestCluster::up(&[]), begun };
        stage.note("the cluster of machines is up");
        stage
    }

    /// Three servers, of which one standby has every commit before it is acknowledged.
    pub(crate) fn with_three() -> Self {
        let stage = Self::new();
        stage.apply(r#"{"instances": 3, "synchronous": {"any": 1}}"#);
        stage.until_ready(3);
        stage.note("three servers are ready");
        stage
    }

    /// Says when something was so.
    pub(crate) fn note(&self, what: &str) {
        println!("{:7.2} s  {what}", self.begun.elapsed().as_secs_f32());
    }

    /// Applies the resource with this spec.
    pub(crate) fn apply(&self, spec: &str) {
        let object = format!(
            r#"{{"apiVersion": "postgres.windlass.dev/v1alpha1", "kind": "PostgresCluster", "metadata": {{"name": "{NAME}"}}, "spec": {spec}}}"#
        );
        let file = self.machine.dir.path().join("cluster.json");
        fs::write(&file, object).expect("a file in a folder of our own");
        self.machine.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("a plain path")]);
    }

    /// Applies any object.
    pub(crate) fn put(&self, object: &Value) {
        let file = self.machine.dir.path().join("object.json");
        fs::write(&file, object.to_string()).expect("a file in a folder of our own");
        self.machine.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("a plain path")]);
    }

    /// Waits until the status of an object of ours is as `is_so` wants it, and gives it.
    pub(crate) fn until_of(&self, kind: &str, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{kind} {name}"), || {
            let status = self.machine.object(kind, name).unwrap_or_default()["status"].clone();
            if is_so(&status) { Ok(status) } else { Err(format!("{status}\n{}", self.summary())) }
        })
    }

    /// The resource.
    pub(crate) fn resource(&self) -> Value {
        self.machine.object("postgresclusters", NAME).unwrap_or_default()
    }

    /// The status of the resource.
    pub(crate) fn status(&self) -> Value {
        self.resource()["status"].clone()
    }

    /// Waits until the status is as `is_so` wants it, and gives it.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(what, || {
            let status = self.status();
            if is_so(&status) { Ok(status) } else { Err(self.summary()) }
        })
    }

    /// Waits until this many servers are there, ready, and nothing is to be done.
    pub(crate) fn until_ready(&self, instances: u64) -> Value {
        self.until(&format!("{instances} ready servers"), |status| {
            let is_current = status["observedGeneration"] == self.resource()["metadata"]["generation"];
            let is_full = status["instances"] == instances && status["readyInstances"] == instances;
            is_current && is_full && condition(status, "Ready")["status"] == "True"
        })
    }

    /// The member that takes writes, by the status.
    pub(crate) fn primary(&self) -> String {
        let status = self.until("a primary", |status| status["primary"].is_string());
        status["primary"].as_str().unwrap_or_default().to_owned()
    }

    /// A writer through the Service of the primary.
    pub(crate) fn writer(&self) -> Writer {
        let service = self.machine.object("service", &format!("{NAME}-rw")).expect("the Service is there");
        let address = service["spec"]["clusterIP"].as_str().expect("it has an address").to_owned();
        Writer::start(&address, &self.password("app"))
    }

    /// The password of a role.
    pub(crate) fn password(&self, role: &str) -> String {
        let template = "go-template={{.data.password | base64decode}}";
        self.machine.kubectl(&["get", "secret", &format!("{NAME}-{role}"), "-o", template])
    }

    /// Asks a member's server, in its Pod.
    pub(crate) fn ask(&self, member: &str, statement: &str) -> String {
        let psql = ["psql", "-h", "/run/postgresql", "-U", "postgres", "-Atqc", statement];
        let pod = format!("{member}-0");
        let all = [&["exec", &pod, "--"], &psql[..]].concat();
        self.machine.kubectl(&all).trim().to_owned()
    }

    /// Sends a signal to every process of a member, the supervisor first.
    pub(crate) fn strike(&self, member: &str, blow: Blow) {
        let signal = match blow {
            Blow::Kill => "-KILL",
            Blow::Freeze => "-STOP",
            Blow::Thaw => "-CONT",
        };
        let pids = self.processes(member);
        assert!(!pids.is_empty(), "{member} has processes");
        let words: Vec<String> = pids.iter().map(u32::to_string).collect();
        std::process::Command::new("kill").arg(signal).args(words).status().expect("kill runs");
    }

    /// The processes of a member: those of the process namespace of its supervisor, which comes first.
    pub(crate) fn processes(&self, member: &str) -> Vec<u32> {
        let all: Vec<u32> = (fs::read_dir("/proc").into_iter().flatten().flatten())
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        // Other clusters of this machine may have a member of that name.
        let address = self.address(member);
        let space = |pid: &u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let mine = all.iter().find(|pid| is_supervisor(**pid, member) && listens(**pid, &address));
        let Some(supervisor) = mine else { return Vec::new() };
        let others = all.iter().filter(|pid| *pid != supervisor && space(pid) == space(supervisor));
        std::iter::once(supervisor).chain(others).copied().collect()
    }

    fn address(&self, member: &str) -> String {
        self.machine.kubectl(&["get", "pod", &format!("{member}-0"), "-o", "jsonpath={.status.podIP}"])
    }

    /// What people would look at, if something does not come about.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let status = self.status();
        for condition in status["conditions"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "{}={} {}", condition["type"], condition["status"], condition["message"]);
        }
        for member in status["members"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "{member}");
        }
        text
    }

    /// Waits for something of the machine, with patience.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn() -> bool) -> Duration {
        let begun = Instant::now();
        eventually(what, || if is_so() { Ok(()) } else { Err(self.summary()) });
        begun.elapsed()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- the cluster of servers ---\n{}", self.summary());
            // Also those of clusters that were restored, and of Jobs that work on backups.
            for pod in self.machine.list(&["pods"]) {
                let pod = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let logs = self.machine.kubectl_command().args(["logs", "--tail=60", &pod]).output();
                let logs = logs.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
                println!("--- {pod} ---\n{logs}");
            }
        }
    }
}

/// A condition of a status.
pub(crate) fn condition(status: &Value, type_: &str) -> Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}

fn is_supervisor(pid: u32, member: &str) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let is_of = words.windows(2).any(|pair| pair[0] == "--member" && pair[1] == member);
    is_of && words.iter().any(|word| word == "instance")
}

/// Whether a process listens on the supervisor's port of this address.
pub(crate) fn listens(pid: u32, ip: &str) -> bool {
    let octets: Vec<u8> = ip.split('.').filter_map(|part| part.parse().ok()).collect();
    let [a, b, c, d] = octets[..] else { return false };
    let wanted = format!("{d:02X}{c:02X}{b:02X}{a:02X}:{:04X}", 8008);
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let sockets: Vec<String> = rows
        .filter(|cells| cells.len() > 9 && cells[1] == wanted && cells[3] == "0A")
        .map(|cells| format!("socket:[{}]", cells[9]))
        .collect();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors
        .into_iter()
        .any(|fd| fs::read_link(fd.path()).is_ok_and(|target| sockets.contains(&target.to_string_lossy().into_owned())))
}
