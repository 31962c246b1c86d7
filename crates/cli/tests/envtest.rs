//! `windlass envtest`: what Go projects find in the folder that `KUBEBUILDER_ASSETS` names.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::{eventually, failure, kubectl, success};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let assets = outer.path().join("with a space");
    (outer, assets)
}

fn fill(windlass: &Path, assets: &Path) -> String {
    success(Command::new(windlass).arg("envtest").arg(assets).arg("--kubectl").arg(kubectl()))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn start(program: &Path, arguments: &[String]) -> Running {
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    Running(child.unwrap_or_else(|error| panic!("{}: {error}", program.display())))
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn the_programs_work_after_windlass_is_gone() {
    let (outer, assets) = folder();
    let windlass = outer.path().join("windlass");
    fs::hard_link(env!("CARGO_BIN_EXE_windlass"), &windlass).unwrap();
    let output = fill(&windlass, &assets);
    assert!(output.starts_with("KUBEBUILDER_ASSETS='") && output.ends_with("with a space'\n"), "{output}");
    fill(&windlass, &assets);
    fs::remove_file(&windlass).unwrap();
    let help = success(Command::new(assets.join("kube-apiserver")).arg("--help"));
    assert!(help.contains("--cert-dir") && !help.contains("--insecure-port"), "{help}");
    assert!(success(Command::new(assets.join("kube-apiserver")).arg("--version")).starts_with("Kubernetes v1.36."));
    let names: Vec<_> = fs::read_dir(&assets).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn etcd_is_healthy() {
    let (_outer, assets) = folder();
    fill(Path::new(env!("CARGO_BIN_EXE_windlass")), &assets);
    let port = free_port();
    let _etcd = start(&assets.join("etcd"), &[format!("--listen-client-urls=http://127.0.0.1:{port}")]);
    let answer = eventually("etcd", || get(port, "/health").map_err(|error| error.to_string()));
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""health":"true""#), "{answer}");
    assert!(get(port, "/v2/keys").unwrap().starts_with("HTTP/1.1 404 "));
    assert!(!success(Command::new(assets.join("etcd")).arg("--help")).contains("unsafe-no-fsync"));
}

/// A kube-apiserver that takes one token, and a kubectl that has it.
struct Server {
    process: Running,
    port: u16,
    assets: PathBuf,
    outer: tempfile::TempDir,
}

impl Server {
    fn start(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let (outer, assets) = folder();
        fill(Path::new(env!("CARGO_BIN_EXE_windlass")), &assets);
        let tokens = outer.path().join("tokens.csv");
        fs::write(&tokens, "secret,ann,u1,system:masters\n").expect("a file of tokens");
        let port = free_port();
        let mut command = Command::new(assets.join("kube-apiserver"));
        command.args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC"]).args(flags);
        command.arg(format!("--secure-port={port}")).arg(format!("--token-auth-file={}", tokens.display()));
        command.arg(format!("--cert-dir={}", outer.path().display())).envs(variables.iter().copied());
        let process = Running(command.stdin(Stdio::null()).spawn().expect("kube-apiserver starts"));
        let server = Server { process, port, assets, outer };
        eventually("the default namespace", || server.try_ask(&["get", "namespace", "default"]));
        server
    }

    fn try_ask(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.assets.join("kubectl"));
        command.env("HOME", self.outer.path()).arg(format!("--server=https://127.0.0.1:{}", self.port));
        let output = command
            .args(["--insecure-skip-tls-verify", "--token=secret"])
            .args(arguments)
            .output()
            .expect("kubectl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    #[track_caller]
    fn ask(&self, arguments: &[&str]) -> String {
        self.try_ask(arguments).unwrap_or_else(|why| panic!("{arguments:?}: {why}"))
    }
}

#[test]
fn kube_apiserver_serves_with_the_flags_that_it_is_given() {
    let flags = ["--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--made-up=1"];
    let mut server = Server::start(&[], &flags);
    assert_eq!(server.ask(&["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"]), "10.0.0.1");
    server.ask(&["run", "x", "--image=x"]);

    let id = rustix::process::Pid::from_child(&server.process.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(server.process.0.wait().unwrap().success());
}

#[test]
fn namespaces_go_where_controllers_are_asked_for() {
    let server = Server::start(&[("WINDLASS_ENVTEST_PROFILE", "gc")], &[]);
    server.ask(&["create", "namespace", "a"]);
    server.ask(&["create", "configmap", "c", "-n", "a"]);
    server.ask(&["delete", "namespace", "a", "--timeout=60s"]);
    assert!(server.try_ask(&["get", "namespace", "a"]).unwrap_err().contains("not found"));
}

#[test]
fn a_kubectl_of_ours_says_what_it_knows() {
    let (_outer, assets) = folder();
    fs::create_dir_all(&assets).unwrap();
    let kubectl = assets.join("kubectl");
    fs::hard_link(env!("CARGO_BIN_EXE_windlass"), &kubectl).unwrap();
    let said = failure(Command::new(&kubectl).args(["create", "namespace", "a"]));
    assert!(said.contains("it knows get, apply"), "{said}");
    let said = failure(Command::new(&kubectl).args(["get", "pods", "--kubeconfig", "/does/not/exist"]));
    assert!(said.contains("/does/not/exist"), "{said}");
}

#[test]
fn the_programs_end_when_whoever_started_them_is_gone() {
    let (_outer, assets) = folder();
    fill(Path::new(env!("CARGO_BIN_EXE_windlass")), &assets);
    let port = free_port();
    // The shell starts etcd, waits until it is told to, and goes without stopping it.
    let mut shell = Command::new("sh")
        .args(["-c", r#""$0" --listen-client-urls="$1" & read line"#])
        .arg(assets.join("etcd"))
        .arg(format!("http://127.0.0.1:{port}"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("etcd", || get(port, "/health").map_err(|error| error.to_string()));
    drop(shell.stdin.take());
    shell.wait().unwrap();
    eventually("the end of etcd", || match get(port, "/health") {
        Ok(answer) => Err(answer),
        Err(_) => Ok(()),
    });
}
