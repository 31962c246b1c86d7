//! Streams to containers, with kubectl: exec, attach, cp, port-forward.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use std::io::Write;
use std::process::{Output, Stdio};

use support::{TestCluster, eventually, success};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: host, command: [/bin/sh, -c, 'exec sleep 100000'], env: [{name: COLOUR, value: blue}]}
  - {name: d, image: host, command: [/bin/sh, -c, 'exec sleep 100000'], workingDir: /usr}
";

/// A cluster with a Pod of two containers.
fn with_pod() -> TestCluster {
    let cluster = TestCluster::up(&[]);
    apply(&cluster, POD);
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/p", "--timeout=120s"]);
    cluster
}

fn apply(cluster: &TestCluster, text: &str) {
    let path = cluster.dir.path().join("applied.yaml");
    std::fs::write(&path, text).unwrap();
    success(cluster.kubectl_command().args(["apply", "-f"]).arg(path));
}

/// Runs kubectl with something to read.
fn typed(cluster: &TestCluster, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = cluster.kubectl_command();
    let pipes = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // A program that does not read it all is no failure.
    let writer = std::thread::spawn(move || stdin.write_all(&input).ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn check(output: &Output, code: i32, stdout: &str, stderr: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), out.as_str()), (Some(code), stdout), "{err}");
    assert!(if stderr.is_empty() { err.is_empty() } else { err.contains(stderr) }, "{err:?} has no {stderr:?}");
}

/// Processes of this machine that run `sleep` with a word.
fn sleepers(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(format!("sleep\0{word}\0").as_bytes())).count()
}

fn until_sleepers(word: &str, expect: usize) {
    eventually(&format!("{expect} processes"), || match sleepers(word) {
        count if count == expect => Ok(()),
        count => Err(format!("{count} processes")),
    });
}

#[test]
fn exec_runs_programs_in_containers() {
    let cluster = with_pod();
    let run = |arguments: &[&str]| typed(&cluster, &[&["exec", "p"], arguments].concat(), b"");
    let output = run(&["-c", "c", "--", "sh", "-c", "echo $COLOUR; echo wrong >&2; exit 7"]);
    check(&output, 7, "blue", "wrong\ncommand terminated with exit code 7");
    check(&run(&["-c", "d", "--", "pwd"]), 0, "/usr", "");
    check(&run(&["--", "hostname"]), 0, "p", "Defaulted container \"c\" out of: c, d");
    check(&run(&["-c", "c", "--", "nosuch"]), 1, "", "exec: \"nosuch\": executable file not found in $PATH");
    check(&run(&["-c", "c", "--", "/no/such"]), 1, "", "No such file or directory");
    check(&run(&["-c", "x", "--", "true"]), 1, "", "container x is not valid for pod p");

    let typing = |arguments: &[&str], input: &[u8]| {
        typed(&cluster, &[&["exec", "-i", "p", "-c", "c", "--"], arguments].concat(), input)
    };
    let large = vec![b'x'; 8 << 20];
    let output = typing(&["cat"], &large);
    assert!(output.status.success() && output.stdout == large, "{} bytes came back", output.stdout.len());
    check(&typing(&["sh", "-c", "read line; echo got $line"], b"one\ntwo\n"), 0, "got one", "");
    check(&typing(&["wc", "-c"], b""), 0, "0", "");
    assert!(typing(&["true"], &large).status.success(), "a program need not read what is typed");
}

#[test]
fn a_terminal_is_a_real_one_and_goes_with_its_client() {
    let cluster = with_pod();
    // `script` gives kubectl a terminal.
    let kubectl = cluster.kubectl_command();
    let program = kubectl.get_program().to_str().unwrap().to_owned();
    let in_terminal = |script: &str| {
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &format!("{program} exec -it p -c c -- sh -c '{script}'"), "/dev/null"]);
        command.envs(kubectl.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let text = success(&mut in_terminal("tty; test -t 2 && echo $TERM"));
    assert!(text.contains("/dev/pts/0") && text.contains("xterm"), "{text}");
    let word = format!("{}.25", 200_000_000 + std::process::id());
    let mut child = in_terminal(&format!("sleep {word}")).spawn().unwrap();
    until_sleepers(&word, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until_sleepers(&word, 0);
    let mut child = cluster.kubectl_command().args(["exec", "p", "-c", "c", "--", "sleep", &word]).spawn().unwrap();
    until_sleepers(&word, 1);
    cluster.kubectl(&["delete", "pod", "p", "--grace-period=1"]);
    assert_eq!(child.wait().unwrap().code(), Some(137), "the stream ends with the Pod");
    until_sleepers(&word, 0);
}

#[test]
fn exec_needs_the_right_to_create() {
    let cluster = with_pod();
    cluster.kubectl(&["create", "role", "looker", "--verb=get", "--resource=pods,pods/exec"]);
    cluster.kubectl(&["create", "rolebinding", "looker", "--role=looker", "--user=jane"]);
    let run = || typed(&cluster, &["exec", "p", "-c", "c", "--as=jane", "--", "true"], b"");
    check(&run(), 1, "", "cannot create resource \"pods/exec\"");
    cluster.kubectl(&["create", "role", "runner", "--verb=create", "--resource=pods/exec"]);
    cluster.kubectl(&["create", "rolebinding", "runner", "--role=runner", "--user=jane"]);
    check(&run(), 0, "", "");
    let policy = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-shells}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec]}]
  validations: [{expression: \"object.command[0] != 'sh'\", message: no shells}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-shells}
spec: {policyName: no-shells, validationActions: [Deny]}
";
    apply(&cluster, policy);
    eventually("the policy is in force", || {
        let output = typed(&cluster, &["exec", "p", "-c", "c", "--", "sh", "-c", "true"], b"");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if text.contains("no shells") { Ok(()) } else { Err(text) }
    });
    check(&run(), 0, "", "");
}
