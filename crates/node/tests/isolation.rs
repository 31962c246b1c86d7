//! The same Pods with each isolation: programs that end, a Service of two Pods on one port, names, exec, logs, a volume,
//! and the cluster killed and started again. `cargo test -p windlass-node --test isolation [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;
mod programs;
mod victim;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, AttachParams, DeleteParams, LogParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::io::AsyncReadExt;
use windlass_cluster::Isolation;

use ground::{Test, create, ended, eventually, once, shell, unique, until, until_processes};
use victim::{connect, spawn_with};

const TESTS: &[Test] = &[
    ("the_same_pods_run_with_isolation_sandbox", || Box::pin(same_pods(Isolation::Sandbox))),
    ("the_same_pods_run_with_isolation_namespaces", || Box::pin(same_pods(Isolation::Namespaces))),
    ("the_same_pods_run_with_isolation_runc", || Box::pin(same_pods(Isolation::Runc))),
    ("pods_with_namespaces_have_networks_of_their_own", || Box::pin(own_networks(Isolation::Namespaces))),
    ("pods_with_runc_have_networks_of_their_own", || Box::pin(own_networks(Isolation::Runc))),
];

fn main() {
    victim::run(TESTS);
}

/// Why this machine cannot do it, if so.
fn obstacle(isolation: Isolation) -> Option<String> {
    if isolation == Isolation::Sandbox {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    if isolation == Isolation::Runc
        && let Err(error) = windlass_node::runc::Runc::find(directory.path())
    {
        return Some(error.to_string());
    }
    let range = |third: u8| windlass_node::AddressRange { network: [10, 250, third, 0].into(), prefix: 17 };
    match windlass_node::network::Network::begin(directory.path(), range(128), range(0)) {
        Ok(network) => {
            network.end();
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Answers every connection on one port with the name of its Pod and what is in its volume, and every datagram with itself.
const SERVER: &str = r#"echo begins; echo kept >> /data/file; exec perl -MIO::Socket::INET -e '
    if (fork == 0) {
        my $u = IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => 80, Proto => "udp") or die $!;
        while (1) { $u->recv(my $m, 100); $u->send($m) } }
    my $l = IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => 80, Listen => 9, ReuseAddr => 1) or die $!;
    while (my $c = $l->accept) { open(F, "/data/file"); print $c "$ENV{HOSTNAME} ", scalar(<F>); close F; close $c }'"#;

/// Asks the Service by its name until both Pods have answered, with a datagram, and at its port of the node; then the API
/// server, and localhost, where nobody listens.
const ASKER: &str = r#"exec perl -MIO::Socket::INET -MIO::Select -e 'my %seen;
    for (1..200) { my $s = IO::Socket::INET->new(PeerAddr => "web", PeerPort => 80, Timeout => 5);
        if ($s) { my $line = <$s>; chomp $line; $seen{$line} = 1 } last if keys %seen == 2; select(undef, undef, undef, 0.1) }
    sub udp { for (1..60) { my $u = IO::Socket::INET->new(PeerAddr => "web", PeerPort => 80, Proto => "udp") or next;
        $u->send("datagram"); next unless IO::Select->new($u)->can_read(0.5); $u->recv(my $m, 100); return $m if $m }
        "silence" }
    sub tcp { IO::Socket::INET->new(PeerAddr => $_[0], PeerPort => $_[1], Timeout => 5) ? $_[2] : "no $_[2]" }
    print join(", ", sort keys %seen), "; ", udp(), ", ", tcp($ENV{NODE}, $ENV{PORT}, "node"), ", ",
        tcp($ENV{KUBERNETES_SERVICE_HOST}, $ENV{KUBERNETES_SERVICE_PORT}, "api"), ", ", tcp("127.0.0.1", 80, "own"), "\n"'"#;

async fn same_pods(isolation: Isolation) {
    if let Some(why) = obstacle(isolation) {
        return println!("SKIPPED, {isolation:?} cannot be had here: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let cluster = spawn_with(directory.path(), isolation);
    let client = connect(directory.path()).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let word = unique();
    for name in ["one", "two"] {
        let mut pod = shell(name, &format!("sleep {word} & {SERVER}"));
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        let container = &mut pod["spec"]["containers"][0];
        container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        container["readinessProbe"] = json!({"tcpSocket": {"port": 80}, "periodSeconds": 1});
        create(&pods, pod).await;
    }
    let services: Api<Service> = Api::default_namespaced(client);
    let ports = json!([{"name": "tcp", "port": 80}, {"name": "udp", "port": 80, "protocol": "UDP"}]);
    let service = json!({"type": "NodePort", "selector": {"app": "web"}, "ports": ports});
    let service = json!({"metadata": {"name": "web"}, "spec": service});
    let service = services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let port = service.spec.unwrap().ports.unwrap()[0].node_port.unwrap();
    programs::check_all(&pods).await;
    check(&pods, "first", port).await;
    look_into(&pods, "two").await;
    let first = said_in(&pods, ["/bin/cat", "/proc/1/comm"], AttachParams::default().stderr(false)).await;
    assert_eq!(first == "perl\n", isolation == Isolation::Runc, "{first} is the first process");
    let before = until_processes(&word, 2).await;
    let restarts = |pod: Pod| pod.status.unwrap().container_statuses.unwrap()[0].restart_count;

    cluster.kill();
    std::fs::remove_file(directory.path().join("kubeconfig")).unwrap();
    let cluster = spawn_with(directory.path(), isolation);
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    check(&pods, "second", port).await;
    assert_eq!(until_processes(&word, 2).await, before, "the same processes");
    assert_eq!(restarts(pods.get("one").await.unwrap()), 0);

    pods.delete("one", &DeleteParams::default().grace_period(0)).await.unwrap();
    await_condition(pods.clone(), "one", |pod: Option<&Pod>| pod.is_none()).await.unwrap();
    until_processes(&word, 1).await;
    cluster.kill();
    assert!(windlass_cluster::end_survivors(directory.path()) >= 1);
    until_processes(&word, 0).await;
    assert_eq!(left_over(directory.path()), Vec::<String>::new());
}

/// Both Pods are reached by name, from outside, and from inside.
async fn check(pods: &Api<Pod>, asker: &str, port: i32) {
    for name in ["one", "two"] {
        until(pods, name, |status| status.ready).await;
        // A node that was just started finds its Pods a moment later.
        let log = eventually(async || pods.logs(name, &LogParams::default()).await.ok()).await;
        assert_eq!(log, "begins\n");
    }
    let mut pod = once(asker, ASKER);
    let node = json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}});
    pod["spec"]["containers"][0]["env"] = json!([node, {"name": "PORT", "value": port.to_string()}]);
    create(pods, pod).await;
    ended(pods, asker).await;
    let said = pods.logs(asker, &LogParams::default()).await.unwrap();
    assert_eq!(said, "one kept, two kept; datagram, node, api, no own\n");

    let address = pods.get("two").await.unwrap().status.unwrap().pod_ip.unwrap();
    let mut stream = tokio::net::TcpStream::connect((address.as_str(), 80)).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "two kept\n");

    let command = [
        "/bin/sh",
        "-c",
        "hostname; perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(\"127.0.0.1:80\")->getline'",
    ];
    assert_eq!(said_in(pods, command, AttachParams::default().stderr(false)).await, "one\none kept\n");
    let terminal = AttachParams::interactive_tty();
    let command = ["/bin/sh", "-c", "test -t 0 && test -t 2 && stty size >/dev/null && echo terminal"];
    assert_eq!(said_in(pods, command, terminal).await, "terminal\r\n");
    let missing = pods.exec("one", ["/nowhere"], &AttachParams::default().stderr(false)).await;
    let status = missing.unwrap().take_status().unwrap().await.unwrap();
    assert!(status.message.as_ref().is_some_and(|why| why.contains("/nowhere")), "{status:?}");
}

/// What a program in the first Pod says.
async fn said_in<const N: usize>(pods: &Api<Pod>, command: [&str; N], how: AttachParams) -> String {
    let mut running = pods.exec("one", command, &how).await.unwrap();
    let mut said = String::new();
    running.stdout().unwrap().read_to_string(&mut said).await.unwrap();
    said
}

/// A container that is added to a Pod sees the processes of another.
async fn look_into(pods: &Api<Pod>, name: &str) {
    let script = "grep -lx perl /proc/[0-9]*/comm >/dev/null && echo seen";
    let added =
        json!({"name": "look", "image": "host", "command": ["/bin/sh", "-c", script], "targetContainerName": "c"});
    let patch = Patch::Strategic(json!({"spec": {"ephemeralContainers": [added]}}));
    pods.patch_ephemeral_containers(name, &PatchParams::default(), &patch).await.unwrap();
    let has_ended = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.ephemeral_container_statuses.as_ref());
        let state = statuses.and_then(|statuses| statuses.first()?.state.as_ref());
        state.is_some_and(|state| state.terminated.is_some())
    };
    await_condition(pods.clone(), name, has_ended).await.unwrap();
    let log = LogParams { container: Some("look".to_owned()), ..LogParams::default() };
    assert_eq!(pods.logs(name, &log).await.unwrap(), "seen\n");
}

/// What a cluster made of the machine's networks and groups that is still there.
fn left_over(directory: &Path) -> Vec<String> {
    let spaces = Command::new("ip").args(["-o", "link"]).output();
    let links = spaces.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let node = directory.canonicalize().unwrap().join("node");
    let bridge = windlass_node::network::bridge_name(&node);
    let links = links.lines().filter(|line| line.contains(&bridge)).map(str::to_owned);
    let group = bridge.replacen("wl", "windlass-", 1);
    let groups = groups_below(Path::new("/sys/fs/cgroup"), 4).into_iter().filter(|path| path.contains(&group));
    links.chain(groups).collect()
}

fn groups_below(directory: &Path, depth: usize) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let with_inner = |path: std::path::PathBuf| {
        let inner = if depth > 0 { groups_below(&path, depth - 1) } else { Vec::new() };
        std::iter::once(path.display().to_string()).chain(inner)
    };
    groups.flat_map(with_inner).collect()
}

async fn own_networks(isolation: Isolation) {
    if let Some(why) = obstacle(isolation) {
        return println!("SKIPPED, {isolation:?} cannot be had here: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let config = windlass_cluster::ClusterConfig { isolation: Some(isolation), ..ground::config(directory.path()) };
    let cluster = windlass_cluster::Cluster::start(config).await.unwrap();
    let client: Client = cluster.client();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut on_host = shell("on-host", "readlink /proc/self/ns/net; sleep 1000");
    on_host["spec"]["hostNetwork"] = json!(true);
    // Two containers share the network of their Pod; a program that is root there cannot change it.
    let mut own =
        shell("own", "readlink /proc/self/ns/net; ip link set lo down 2>/dev/null && echo changed; sleep 1000");
    let mut second = own["spec"]["containers"][0].clone();
    second["name"] = json!("d");
    own["spec"]["containers"].as_array_mut().unwrap().push(second);
    create(&pods, on_host).await;
    create(&pods, own).await;
    let namespace = async |pod: &str, container: &str| {
        until(&pods, pod, |status| status.ready).await;
        let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        loop {
            let log = pods.logs(pod, &params).await.unwrap_or_default();
            if log.ends_with('\n') {
                return log.trim().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let host = std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    assert_eq!(namespace("on-host", "c").await, host);
    let first = namespace("own", "c").await;
    assert_ne!(first, host);
    assert_eq!(namespace("own", "d").await, first);
    let uid = pods.get("own").await.unwrap().uid().unwrap();
    let spaces =
        || std::fs::read_dir("/run/netns").unwrap().flatten().any(|e| e.file_name().to_string_lossy().ends_with(&uid));
    assert!(spaces());
    pods.delete("own", &DeleteParams::default().grace_period(0)).await.unwrap();
    await_condition(pods.clone(), "own", |pod: Option<&Pod>| pod.is_none()).await.unwrap();
    // Nobody waits for a Pod without grace; its network goes with what is left of it.
    eventually(async || (!spaces()).then_some(())).await;
    cluster.shutdown().await;
    assert_eq!(left_over(directory.path()), Vec::<String>::new());
}
