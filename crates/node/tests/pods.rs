//! Pods on a real cluster in this process, and a cluster in another process that is killed. Its own `main`, as this
//! program is also the sandbox process and the cluster to kill: `cargo test -p windlass-node --test pods [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;
mod victim;

use std::time::Duration;

use ground::{Test, create, delete, eventually, on_cluster, processes, shell, told, unique, until, until_processes};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, PersistentVolumeClaim, Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::json;
use tokio::io::AsyncReadExt;
use victim::{connect, spawn};

const TESTS: &[Test] = &[
    ("a_pod_gets_its_environment_volumes_and_address", || Box::pin(surroundings())),
    ("services_and_pods_are_found_by_name", || Box::pin(names())),
    ("a_killed_program_is_started_again_and_counted", || Box::pin(killed_program())),
    ("a_finished_pod_says_how_it_ended", || Box::pin(finished())),
    ("datagrams_to_a_service_reach_its_pods", || Box::pin(datagrams())),
    ("ports_of_the_machine_lead_to_their_pod", || Box::pin(host_ports())),
    ("an_image_that_does_not_exist_is_explained", || Box::pin(no_image())),
    ("a_missing_config_map_holds_a_pod_up_until_it_is_there", || Box::pin(late_config())),
    ("a_deleted_pod_goes_with_its_processes", || Box::pin(deleted())),
    ("a_stateful_set_keeps_its_data", || Box::pin(kept_data())),
    ("a_killed_cluster_leaves_nothing_and_starts_its_pods_anew", || Box::pin(killed_cluster())),
];

fn main() {
    victim::run(TESTS);
}

async fn surroundings() {
    on_cluster(async |client, _| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = serde_json::from_value(json!({"metadata": {"name": "m"}, "data": {"k": "one"}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = shell("p", "echo $IP; cat /etc/m/k; cat /work/x; test -s $T/token && test -s $T/ca.crt && echo token; sleep 1000");
        pod["spec"]["initContainers"] = json!([{"name": "i", "image": "host", "volumeMounts": [{"name": "w", "mountPath": "/work"}],
            "command": ["/bin/sh", "-c", "echo ' init' > /work/x"]}]);
        pod["spec"]["volumes"] = json!([{"name": "w", "emptyDir": {}}, {"name": "m", "configMap": {"name": "m"}}]);
        let container = &mut pod["spec"]["containers"][0];
        container["volumeMounts"] = json!([{"name": "w", "mountPath": "/work"}, {"name": "m", "mountPath": "/etc/m"}]);
        container["env"] = json!([{"name": "T", "value": "/var/run/secrets/kubernetes.io/serviceaccount"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
        container["readinessProbe"] = json!({"exec": {"command": ["/bin/sh", "-c", "grep -q init /work/x"]}, "periodSeconds": 1});
        create(&pods, pod).await;
        let pod = until(&pods, "p", |status| status.ready).await;
        let address = pod.status.unwrap().pod_ip.unwrap();
        let expect = format!("{address}\none init\ntoken\n");
        let read = || async { pods.logs("p", &LogParams::default()).await.unwrap() };
        while read().await != expect {
            assert!(expect.starts_with(&read().await), "{}", read().await);
        }
    })
    .await;
}

/// Asks the machine's own resolver library in a Pod, and sends a datagram from the Pod to itself.
const ASKS: &str = r#"
until getent -s dns ahostsv4 db-0.db.default.svc.cluster.local > /dev/null; do sleep 0.1; done
for name in db-0.db db web.default web; do getent -s dns ahostsv4 $name | head -n 1 | cut -d ' ' -f 1; done
grep -c svc /etc/hosts
head -n 1 /etc/resolv.conf
perl -MSocket -e 'my $to = sockaddr_in(9999, inet_aton("127.0.0.1")); socket(S, PF_INET, SOCK_DGRAM, 0);
    bind(S, $to) or die; socket(C, PF_INET, SOCK_DGRAM, 0); send(C, "hello", 0, $to) == 5 or die $!;
    recv(S, my $text, 9, 0); print "$text\n"'
"#;

async fn names() {
    on_cluster(async |client, _| {
        let services: Api<Service> = Api::default_namespaced(client.clone());
        for (name, address) in [("db", Some("None")), ("web", None)] {
            let service = json!({"metadata": {"name": name}, "spec": {"clusterIP": address, "selector": {"app": name}, "ports": [{"port": 80}]}});
            services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        }
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut database = shell("db-0", "exec sleep 1000");
        database["metadata"]["labels"] = json!({"app": "db"});
        database["spec"]["hostname"] = json!("db-0");
        database["spec"]["subdomain"] = json!("db");
        create(&pods, database).await;
        let ready = until(&pods, "db-0", |status| status.ready).await;
        let pod_address = ready.status.unwrap().pod_ip.unwrap();
        let mut asks = shell("asks", ASKS);
        asks["spec"]["restartPolicy"] = json!("Never");
        create(&pods, asks).await;
        until(&pods, "asks", |status| status.state.as_ref().is_some_and(|state| state.terminated.is_some())).await;
        let log = pods.logs("asks", &LogParams::default()).await.unwrap();
        let address = services.get("web").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let search = "search default.svc.cluster.local svc.cluster.local cluster.local";
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines[..4], [&pod_address, &pod_address, &address, &address], "{log}");
        // Where the name server has its own port, the hosts file names the Pod alone.
        let named: usize = lines[4].parse().unwrap();
        assert!(named == 0 || !rustix::process::geteuid().is_root(), "{log}");
        assert!(lines[5].starts_with(search), "{log}");
        assert_eq!(lines[6], "hello", "{log}");
    })
    .await;
}

async fn killed_program() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let word = unique();
        create(&pods, shell("p", &format!("exec sleep {word}"))).await;
        let first = until_processes(&word, 1).await[0];
        until(&pods, "p", |status| status.ready).await;
        rustix::process::kill_process(rustix::process::Pid::from_raw(first).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        let pod = until(&pods, "p", |status| status.restart_count == 1 && status.ready).await;
        let status = &pod.status.unwrap().container_statuses.unwrap()[0];
        let last = status.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert_eq!((last.exit_code, last.reason.as_deref()), (137, Some("Error")));
        assert_ne!(until_processes(&word, 1).await[0], first);
    })
    .await;
}

async fn finished() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = shell("p", "echo why > /dev/termination-log; exit 3");
        pod["spec"]["restartPolicy"] = json!("Never");
        create(&pods, pod).await;
        let ended = |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.terminated.is_some());
        let status = until(&pods, "p", ended).await.status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        let state = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
        assert_eq!((state.exit_code, state.message.as_deref()), (3, Some("why\n")));
    })
    .await;
}

fn waits_for(reason: &'static str) -> impl Fn(&ContainerStatus) -> bool {
    move |status| {
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.and_then(|waiting| waiting.reason.as_deref()) == Some(reason)
    }
}

async fn no_image() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = shell("p", "");
        pod["spec"]["containers"][0]["image"] = json!("registry.example.com/none/such:1");
        create(&pods, pod).await;
        let pod = until(&pods, "p", waits_for("ErrImagePull")).await;
        let state = pod.status.unwrap().container_statuses.unwrap()[0].state.clone().unwrap();
        let message = state.waiting.unwrap().message.unwrap();
        assert!(message.contains("does not exist") && message.contains("windlass image add"), "{message}");
    })
    .await;
}

async fn late_config() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut pod = shell("p", "exec sleep 1000");
        pod["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "late"}}]);
        create(&pods, pod).await;
        until(&pods, "p", waits_for("CreateContainerConfigError")).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let map = serde_json::from_value(json!({"metadata": {"name": "late"}, "data": {"k": "v"}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        until(&pods, "p", |status| status.ready).await;
    })
    .await;
}

async fn deleted() {
    on_cluster(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let word = unique();
        let script = format!("trap '' TERM; setsid sleep {word} & while :; do sleep {word}; done");
        let pod = create(&pods, shell("p", &script)).await;
        until_processes(&word, 2).await;
        pods.delete("p", &DeleteParams::default()).await.unwrap();
        await_condition(pods.clone(), "p", |pod: Option<&Pod>| pod.is_none()).await.unwrap();
        assert!(processes(&word).is_empty());
        assert!(!directory.join("node/pods").join(pod.uid().unwrap()).exists());
    })
    .await;
}

async fn kept_data() {
    on_cluster(async |client, directory| {
        let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client);
        let pod = shell("x", "echo run >> /data/runs; sleep 1000");
        let mut template = json!({"metadata": {"labels": {"app": "db"}}, "spec": pod["spec"]});
        let container = &mut template["spec"]["containers"][0];
        container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        container["readinessProbe"] =
            json!({"exec": {"command": ["/bin/sh", "-c", "test -s /data/runs"]}, "periodSeconds": 1});
        let set = json!({"metadata": {"name": "db"}, "spec": {"serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}}}}]}});
        sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
        let first = until(&pods, "db-0", |status| status.ready).await;
        let claim = claims.get("data-db-0").await.unwrap();
        assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));
        pods.delete("db-0", &DeleteParams::default().grace_period(0)).await.unwrap();
        let is_next = |pod: Option<&Pod>| {
            let ready =
                pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref()?.first().map(|one| one.ready));
            pod.is_some_and(|pod| pod.uid() != first.uid()) && ready == Some(true)
        };
        await_condition(pods.clone(), "db-0", is_next).await.unwrap();
        let volumes = directory.join("volumes");
        let volume = std::fs::read_dir(&volumes).unwrap().next().unwrap().unwrap().path();
        assert_eq!(std::fs::read_to_string(volume.join("runs")).unwrap(), "run\nrun\n");

        sets.delete("db", &DeleteParams::foreground()).await.unwrap();
        await_condition(pods, "db-0", |pod: Option<&Pod>| pod.is_none()).await.unwrap();
        claims.delete("data-db-0", &DeleteParams::default()).await.unwrap();
        await_condition(claims, "data-db-0", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await.unwrap();
        eventually(async || std::fs::read_dir(&volumes).unwrap().next().is_none().then_some(())).await;
    })
    .await;
}

async fn killed_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = spawn(directory.path());
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    let word = unique();
    create(&pods, shell("p", &format!("setsid sleep {word} & exec sleep {word}"))).await;
    until(&pods, "p", |status| status.ready).await;
    let before = until_processes(&word, 2).await;
    cluster.kill();
    until_processes(&word, 0).await;

    std::fs::remove_file(directory.path().join("kubeconfig")).unwrap();
    let cluster = spawn(directory.path());
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    let pod = until(&pods, "p", |status| status.restart_count == 1 && status.ready).await;
    let after = until_processes(&word, 2).await;
    assert!(before.iter().all(|process| !after.contains(process)));
    let last = pod.status.unwrap().container_statuses.unwrap()[0].last_state.clone().unwrap();
    assert_eq!(last.terminated.unwrap().exit_code, 137);
    cluster.kill();
    until_processes(&word, 0).await;
    windlass_cluster::end_survivors(directory.path());
}

/// Answers datagrams with its own address and where they came from.
const ECHO: &str = r#"exec perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); bind(S, sockaddr_in(5300, INADDR_ANY)) or die $!;
    while (my $from = recv(S, my $text, 1500, 0)) { send(S, "$ENV{NAME} $text", 0, $from) }'"#;

/// Asks a Service three times from one socket until all are answered, then once each from ten others.
const ASKER: &str = r#"exec perl -MSocket -MIO::Socket::INET -e '
    sub one { my ($s, $text) = @_; for (1..50) { $s->send($text); my $r = ""; vec($r, fileno($s), 1) = 1;
        if (select($r, undef, undef, 0.2)) { $s->recv(my $said, 1500); return $said if $said =~ / $text$/ } } die "no answer" }
    sub open_one { IO::Socket::INET->new(Proto => "udp", PeerAddr => $ENV{TO}) or die $! }
    my $s = open_one(); print join(",", map { one($s, $_) } 1..3), "\n";
    my %seen = map { one(open_one(), "x") => 1 } 1..10; print join(",", sort keys %seen), "\n"'"#;

async fn datagrams() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        for name in ["a", "b"] {
            let mut pod = shell(name, ECHO);
            pod["metadata"]["labels"] = json!({"app": "echo"});
            pod["spec"]["containers"][0]["env"] = json!([{"name": "NAME", "value": name}]);
            create(&pods, pod).await;
        }
        for name in ["a", "b"] {
            until(&pods, name, |status| status.ready).await;
        }
        let services: Api<Service> = Api::default_namespaced(client);
        let service = json!({"metadata": {"name": "echo"}, "spec": {"type": "NodePort", "selector": {"app": "echo"},
            "ports": [{"port": 53, "targetPort": 5300, "protocol": "UDP"}]}});
        let service = services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        let spec = service.spec.unwrap();
        let node_port = spec.ports.unwrap()[0].node_port.unwrap();
        let host = pods.get("a").await.unwrap().status.unwrap().host_ip.unwrap();
        // As root both ports are what they say; otherwise calls of Pods are led to the one that stands in.
        let fronts =
            [("by-address", format!("{}:53", spec.cluster_ip.unwrap())), ("by-node", format!("{host}:{node_port}"))];
        for (name, to) in fronts {
            let mut pod = shell(name, ASKER);
            pod["spec"]["restartPolicy"] = json!("OnFailure");
            pod["spec"]["containers"][0]["env"] = json!([{"name": "TO", "value": to}]);
            create(&pods, pod).await;
            until(&pods, name, |status| status.state.as_ref().is_some_and(|state| state.terminated.is_some())).await;
            let log = pods.logs(name, &LogParams::default()).await.unwrap();
            let lines: Vec<&str> = log.lines().collect();
            let one_flow = ["a 1,a 2,a 3", "b 1,b 2,b 3"];
            assert!(lines.len() == 2 && one_flow.contains(&lines[0]), "a flow keeps its endpoint: {log}");
            assert_eq!(lines[1], "a x,b x", "flows take turns: {log}");
        }
    })
    .await;
}

/// Says a word to whoever connects.
const GREETER: &str = r#"exec perl -MIO::Socket::INET -e '
    my $all = IO::Socket::INET->new(Listen => 5, LocalPort => 8080, ReuseAddr => 1) or die $!;
    while (my $one = $all->accept) { print $one "hello\n"; close $one }'"#;

/// A port that is free for a moment.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn greeting(address: &str) -> Option<String> {
    let mut said = String::new();
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    stream.read_to_string(&mut said).await.ok()?;
    Some(said)
}

async fn host_ports() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let port = free_port();
        let mut pod = shell("p", GREETER);
        let mut echo = shell("q", ECHO)["spec"]["containers"][0].clone();
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8080, "hostPort": port}]);
        echo["name"] = json!("echo");
        echo["ports"] = json!([{"containerPort": 5300, "hostPort": port, "hostIP": "127.0.0.1", "protocol": "UDP"}]);
        echo["env"] = json!([{"name": "NAME", "value": "p"}]);
        pod["spec"]["containers"].as_array_mut().unwrap().push(echo);
        create(&pods, pod).await;
        let node = until(&pods, "p", |status| status.ready).await.status.unwrap().host_ip.unwrap();
        for address in [format!("127.0.0.1:{port}"), format!("{node}:{port}")] {
            let said = eventually(async || greeting(&address).await.filter(|said| !said.is_empty())).await;
            assert_eq!(said, "hello\n", "{address}");
        }
        let asker = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let answer = eventually(async || {
            asker.send_to(b"x", ("127.0.0.1", port)).await.unwrap();
            let mut buffer = [0; 16];
            let received = tokio::time::timeout(Duration::from_millis(200), asker.recv(&mut buffer)).await;
            received.ok()?.ok().map(|length| buffer[..length].to_vec())
        });
        assert_eq!(answer.await, b"p x");

        let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = holder.local_addr().unwrap().port();
        let mut other = shell("r", GREETER);
        other["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8080, "hostPort": taken}]);
        create(&pods, other).await;
        told(&client, "r", "FailedCreatePodSandBox", &format!("another program listens on port {taken}")).await;
        drop(holder);
        until(&pods, "r", |status| status.ready).await;
        delete(&pods, "p").await;
        std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free again");
    })
    .await;
}
