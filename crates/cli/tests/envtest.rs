//! `windlass envtest`: what Go projects find in the folder that `KUBEBUILDER_ASSETS` names.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::{eventually, kubectl, success};

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

#[test]
fn kube_apiserver_serves_with_the_flags_that_it_is_given() {
    let (outer, assets) = folder();
    fill(Path::new(env!("CARGO_BIN_EXE_windlass")), &assets);
    let tokens = outer.path().join("tokens.csv");
    fs::write(&tokens, "secret,ann,u1,system:masters\n").unwrap();
    let port = free_port();
    let flags = [
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--token-auth-file={}", tokens.display()),
        format!("--cert-dir={}", outer.path().display()),
        "--authorization-mode=RBAC".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--made-up=1".to_owned(),
    ];
    let mut server = start(&assets.join("kube-apiserver"), &flags);
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(assets.join("kubectl"));
        command.env("HOME", outer.path()).arg(format!("--server=https://127.0.0.1:{port}"));
        command.args(["--insecure-skip-tls-verify", "--token=secret"]).args(arguments).output().unwrap()
    };
    eventually("the default namespace", || {
        let output = ask(&["get", "namespace", "default"]);
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
    let output = ask(&["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10.0.0.1");
    let output = ask(&["run", "x", "--image=x"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let id = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(server.0.wait().unwrap().success());
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
