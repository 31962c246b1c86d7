//! Streams to containers, with kubectl: exec, attach, cp, port-forward.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};

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

#[test]
fn clients_attach_to_the_program_of_a_container() {
    let cluster = TestCluster::up(&[]);
    let run = ["run", "r", "-i", "--rm", "-q", "--restart=Never", "--image=host", "--command", "--", "/bin/sh", "-c"];
    let output = typed(&cluster, &[&run[..], &["cat; echo done >&2; exit 3"]].concat(), b"one\ntwo\n");
    check(&output, 3, "one\ntwo", "done");

    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: host, stdin: true, command: [/bin/sh, -c, 'while read line; do echo got $line; done']}]
";
    apply(&cluster, pod);
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/a", "--timeout=120s"]);
    // Without stdinOnce the program goes on after a client has gone.
    for word in ["first", "second"] {
        let mut child = cluster.kubectl_command();
        let mut child =
            child.args(["attach", "-i", "-q", "a"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{word}").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("got {word}\n"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(cluster.kubectl(&["logs", "a"]), "got first\ngot second\n");
}

#[test]
fn files_are_copied_both_ways() {
    let cluster = with_pod();
    let folder = cluster.dir.path().join("folder");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(folder.join("inner/file"), &content).unwrap();
    cluster.kubectl(&["cp", "folder", "p:/tmp/", "-c", "c"]);
    cluster.kubectl(&["cp", "p:/tmp/folder", "back", "-c", "c"]);
    assert!(std::fs::read(cluster.dir.path().join("back/inner/file")).unwrap() == content);
}

/// A server that says where a connection came to, again and again.
const SERVER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: s, labels: {app: s}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: host
    command: [/usr/bin/env, python3, -c, 'import socketserver as s; s.ThreadingTCPServer((\"\", 9000), type(\"H\", (s.StreamRequestHandler,), dict(handle=lambda self: self.wfile.write(self.rfile.readline().upper())))).serve_forever()']
    readinessProbe: {tcpSocket: {port: 9000}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {selector: {app: s}, ports: [{port: 80, targetPort: 9000}]}
";

#[test]
fn ports_of_pods_and_services_are_forwarded() {
    forward_ports(&TestCluster::up(&[]));
}

#[test]
fn ports_of_pods_with_networks_of_their_own_are_forwarded() {
    // Networks are root's to make, with the program `ip`.
    if !rustix::process::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        return println!("SKIPPED: networks of Pods need root and iproute2");
    }
    forward_ports(&TestCluster::up(&["--isolation", "namespaces"]));
}

fn forward_ports(cluster: &TestCluster) {
    apply(cluster, SERVER);
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/s", "--timeout=120s"]);
    for (target, websockets) in [("pod/s", "true"), ("svc/s", "true"), ("pod/s", "false")] {
        let ports = if target == "svc/s" { ":80" } else { ":9000" };
        let mut command = cluster.kubectl_command();
        command.args(["port-forward", target, ports]).env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        // Held to the end: kubectl goes on to print.
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:")).unwrap().to_owned();
        let ask = |text: String| {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            writeln!(stream, "{text}").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                (0..8).map(|number| (number, scope.spawn(move || ask(format!("hello {number}"))))).collect();
            for (number, answer) in asked {
                assert_eq!(answer.join().unwrap(), format!("HELLO {number}\n"), "{target} {websockets}");
            }
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn clients_without_websockets_are_served() {
    let cluster = with_pod();
    let mut command = cluster.kubectl_command();
    command.args(["exec", "-i", "p", "-c", "c", "--", "sh", "-c", "cat; echo wrong >&2; exit 7"]);
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let typed = std::thread::spawn(move || stdin.write_all(&[b'x'; 1 << 20]));
    let output = child.wait_with_output().unwrap();
    typed.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stdout == [b'x'; 1 << 20], "{} bytes came back", output.stdout.len());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("wrong\n"));
}

#[test]
fn an_ephemeral_container_sees_the_processes_of_its_target() {
    let cluster = with_pod();
    let look = "cat /proc/2/comm; tr '\\0' '\\n' < /proc/2/environ | grep ^COLOUR";
    cluster.kubectl(&["debug", "p", "-q", "--image=host", "--target=c", "-c", "look", "--", "/bin/sh", "-c", look]);
    eventually("the ephemeral container has ended", || {
        let pod = cluster.object("pod", "p").ok_or("no Pod")?;
        let status = &pod["status"]["ephemeralContainerStatuses"][0];
        match &status["state"]["terminated"]["exitCode"] {
            code if *code == 0 => Ok(()),
            _ => Err(status.to_string()),
        }
    });
    assert_eq!(cluster.kubectl(&["logs", "p", "-c", "look"]), "sleep\nCOLOUR=blue\n");
    assert_eq!(cluster.object("pod", "p").unwrap()["status"]["phase"], "Running");
}

#[test]
fn logs_are_shown_as_asked_for() {
    let cluster = TestCluster::up(&[]);
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: l, labels: {app: l}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: host, command: [/bin/sh, -c, 'echo one; echo two; echo three; sleep 0.5; exit 1']}
  - {name: d, image: host, command: [/bin/sh, -c, 'echo other; exec sleep 100000']}
";
    apply(&cluster, pod);
    eventually("the container was started again", || {
        let pod = cluster.object("pod", "l").ok_or("no Pod")?;
        let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
        if restarts.as_u64() > Some(0) { Ok(()) } else { Err(restarts.to_string()) }
    });
    let logs = |arguments: &[&str]| typed(&cluster, &[&["logs", "l", "-c", "c"], arguments].concat(), b"");
    check(&logs(&["--previous"]), 0, "one\ntwo\nthree", "");
    check(&logs(&["--previous", "--tail=2"]), 0, "two\nthree", "");
    check(&logs(&["--previous", "--limit-bytes=5"]), 0, "one\nt", "");
    check(&logs(&["--previous", "--since-time=2100-01-01T00:00:00Z"]), 0, "", "");
    check(&logs(&["--previous", "--since=1h", "--tail=1"]), 0, "three", "");
    check(&logs(&["-f"]), 0, "one\ntwo\nthree", "");
    let stamped = cluster.kubectl(&["logs", "l", "-c", "d", "--timestamps"]);
    assert!(stamped.split(' ').next().unwrap().ends_with('Z') && stamped.ends_with(" other\n"), "{stamped}");
    assert_eq!(cluster.kubectl(&["logs", "-l", "app=l", "--prefix", "-c", "d"]), "[pod/l/d] other\n");
    let raw = |query: &str| {
        let path = format!("/api/v1/namespaces/default/pods/l/log?container=c&{query}");
        typed(&cluster, &["get", "--raw", &path], b"")
    };
    check(&raw("tailLines=-1"), 1, "", "tailLines: Invalid value: -1: must be greater than or equal to 0");
    check(&raw("sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z"), 1, "", "at most one of `sinceTime` or `sinceSeconds`");
}
