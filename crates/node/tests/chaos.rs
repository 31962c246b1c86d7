//! Faults on purpose, done to real Pods. Its own `main`, as this program is also the sandbox process and the cluster to
//! kill: `cargo test -p windlass-node --test chaos [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod faults;
mod ground;
mod victim;

use std::io::{Read, Write};
use std::net::TcpStream;

use faults::{
    ASKER, ECHO, address_of, answers, asker, is_stopped, labelled, order, running, stop, until_answers, until_chaos,
    until_ended, until_last_line, until_suffering,
};
use ground::{Test, eventually, on_cluster, processes_with, shell, told, unique, until};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, LogParams, PostParams};
use serde_json::{Value, json};
use windlass_node::chaos::{Chaos, Phase, VictimState};

const TESTS: &[Test] = &[
    ("a_kill_looks_like_a_crash", || Box::pin(kill())),
    ("a_pause_stops_every_process_and_ends_in_time_or_with_its_resource", || Box::pin(pause())),
    ("a_pod_that_is_disconnected_from_everything_is_alone", || Box::pin(from_everything())),
    ("a_pod_is_disconnected_from_peers_or_from_the_api_server", || Box::pin(from_some())),
    ("a_service_that_is_disconnected_does_not_answer", || Box::pin(service())),
    ("a_full_volume_and_a_slow_disk", || Box::pin(disk())),
    ("a_clock_is_wrong_for_a_while", || Box::pin(skew())),
    ("what_cannot_be_done_is_said", || Box::pin(refused())),
    ("rounds_come_again_and_pick_one", || Box::pin(rounds())),
    ("a_killed_cluster_leaves_nothing_paused_or_cut", || Box::pin(killed_cluster())),
];

/// An hour at most; no test waits for it.
const LONG: &str = "1h";

fn main() {
    victim::run(TESTS);
}

async fn kill() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        running(&pods, labelled(shell("p", "exec sleep 1000"), "p")).await;
        let spec = json!({"target": {"selector": {"matchLabels": {"app": "p"}}}, "fault": {"kill": {}}});
        let all = order(&client, "k", spec).await;
        let pod = until(&pods, "p", |status| status.restart_count == 1 && status.ready).await;
        let last = pod.status.unwrap().container_statuses.unwrap()[0].last_state.clone().unwrap().terminated.unwrap();
        assert_eq!((last.exit_code, last.reason.as_deref()), (137, Some("Error")));
        let status = until_ended(&all, "k").await;
        assert_eq!((status.victims.len(), status.victims[0].state), (1, VictimState::Done));
        assert_eq!(status.message, "1 done and undone");
        told(&client, "p", "Chaos", "suffers kill of chaos k").await;
    })
    .await;
}

async fn pause() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let word = unique();
        running(&pods, shell("p", &format!("setsid sleep {word} & sleep {word} & wait"))).await;
        let sleeps = ground::until_processes(&word, 2).await;
        let shells: Vec<i32> = processes_with(&format!("setsid sleep {word} & sleep {word} & wait"));
        let all_of = || sleeps.iter().chain(&shells).copied();
        assert!(!shells.is_empty() && !all_of().any(is_stopped));
        // A process that was told to stop does so when it is its turn.
        let all_stop = || eventually(async || all_of().all(is_stopped).then_some(()));
        let spec = |duration: &str| json!({"target": {"pods": ["p"]}, "fault": {"pause": {}}, "duration": duration});
        let all = order(&client, "long", spec(LONG)).await;
        until_suffering(&all, "long").await;
        all_stop().await;
        stop(&all, "long").await;
        eventually(async || (!all_of().any(is_stopped)).then_some(())).await;

        order(&client, "short", spec("5s")).await;
        until_suffering(&all, "short").await;
        all_stop().await;
        let status = until_ended(&all, "short").await;
        assert!(!all_of().any(is_stopped));
        assert_eq!(status.victims[0].message, "its time was over");
        assert!(status.victims[0].ended.is_some());
        let pod = pods.get("p").await.unwrap();
        assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 0);
    })
    .await;
}

async fn from_everything() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let server = running(&pods, labelled(shell("server", ECHO), "server")).await;
        let to = address_of(&server);
        until_answers(&to, true).await;
        running(&pods, asker("asker", &to, false)).await;
        until_last_line(&pods, "asker", "yes").await;
        // It asks itself as well, which a cut leaves alone.
        let mut own = TcpStream::connect(&to).unwrap();
        own.write_all(b"x\n").unwrap();
        own.read_exact(&mut [0; 2]).unwrap();
        let spec = json!({"target": {"pods": ["server"]}, "fault": {"disconnect": {}}, "duration": LONG});
        let all = order(&client, "alone", spec).await;
        until_suffering(&all, "alone").await;
        let broken = own.read(&mut [0; 1]).unwrap_err();
        assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset, "what was connected is broken off");
        assert!(!answers(&to));
        until_last_line(&pods, "asker", "no").await;
        stop(&all, "alone").await;
        until_answers(&to, true).await;
        until_last_line(&pods, "asker", "yes").await;
        let pod = pods.get("server").await.unwrap();
        assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 0, "the program lives on");
    })
    .await;
}

async fn from_some() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let server = running(&pods, labelled(shell("server", ECHO), "server")).await;
        let to = address_of(&server);
        let services: Api<Service> = Api::default_namespaced(client.clone());
        let web =
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "server"}, "ports": [{"port": 7000}]}});
        let web = services.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
        let through = format!("{}:7000", web.spec.unwrap().cluster_ip.unwrap());
        running(&pods, asker("one", &to, false)).await;
        running(&pods, asker("other", &to, false)).await;
        running(&pods, asker("through", &through, false)).await;
        let mut api = asker("api", "", true);
        let container = &mut api["spec"]["containers"][0];
        let script = format!("TO=$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT MUTE=1; export TO MUTE; {ASKER}");
        container["command"] = json!(["/bin/sh", "-c", script]);
        container["env"] = json!([]);
        running(&pods, api).await;
        for name in ["one", "other", "through", "api"] {
            until_last_line(&pods, name, "yes").await;
        }
        let from = json!([{"selector": {"matchLabels": {"app": "one"}}}, {"pod": "through"}]);
        let spec = json!({"target": {"pods": ["server"]}, "fault": {"disconnect": {"from": from}}, "duration": LONG});
        let all = order(&client, "peers", spec).await;
        until_last_line(&pods, "one", "no").await;
        until_last_line(&pods, "through", "no").await;
        let spec = json!({"target": {"pods": ["api"]}, "duration": LONG,
            "fault": {"disconnect": {"from": [{"apiServer": {}}]}}});
        order(&client, "api", spec).await;
        until_last_line(&pods, "api", "no").await;
        assert!(answers(&to), "others are not meant");
        assert_eq!(pods.logs("other", &LogParams::default()).await.unwrap(), "yes\n");
        stop(&all, "peers").await;
        stop(&all, "api").await;
        for name in ["one", "through", "api"] {
            until_last_line(&pods, name, "yes").await;
        }
    })
    .await;
}

async fn service() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let server = running(&pods, labelled(shell("server", ECHO), "server")).await;
        let services: Api<Service> = Api::default_namespaced(client.clone());
        let web =
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "server"}, "ports": [{"port": 7000}]}});
        let web = services.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
        let address = format!("{}:7000", web.spec.unwrap().cluster_ip.unwrap());
        until_answers(&address, true).await;
        let mut open = TcpStream::connect(&address).unwrap();
        open.write_all(b"x\n").unwrap();
        open.read_exact(&mut [0; 2]).unwrap();
        let spec = json!({"target": {"service": "web"}, "fault": {"disconnect": {}}, "duration": LONG});
        let all = order(&client, "cut", spec).await;
        until_suffering(&all, "cut").await;
        until_answers(&address, false).await;
        assert!(open.read(&mut [0; 1]).is_err(), "what was connected is broken off");
        assert!(answers(&address_of(&server)), "the Pod behind it is not meant");
        stop(&all, "cut").await;
        until_answers(&address, true).await;
    })
    .await;
}

/// Writes to a volume and beside it, and tells what became of it; a flush that takes half a second is slow.
const WRITER: &str = r#"exec perl -MTime::HiRes=time,sleep -MIO::Handle -e '$| = 1; my $last = "";
    while (1) { my $began = time; my @said;
        for my $file ("/data/f", "/tmp/f") { open(my $f, ">>", $file) or die $!; my $ok = syswrite($f, "x" x 10);
            my $why = $ok ? "ok" : "$!"; $f->sync; push @said, $why }
        push @said, time - $began > 1.0 ? "slow" : "quick";
        my $now = join(", ", @said); print "$now\n" if $now ne $last; $last = $now; sleep 0.05 }'"#;

async fn disk() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut pod = shell("p", WRITER);
        pod["metadata"]["annotations"] = json!({"windlass.dev/chaos": "disk"});
        pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        running(&pods, pod).await;
        until_last_line(&pods, "p", "ok, ok, quick").await;
        let spec = json!({"target": {"pods": ["p"]}, "fault": {"fill": {"volume": "data"}}, "duration": LONG});
        let all = order(&client, "full", spec).await;
        until_suffering(&all, "full").await;
        until_last_line(&pods, "p", "No space left on device, ok, quick").await;
        stop(&all, "full").await;
        until_last_line(&pods, "p", "ok, ok, quick").await;
        let slow = json!({"slow": {"delay": "600ms", "volume": "data"}});
        order(&client, "slow", json!({"target": {"pods": ["p"]}, "fault": slow, "duration": LONG})).await;
        until_suffering(&all, "slow").await;
        until_last_line(&pods, "p", "ok, ok, slow").await;
        stop(&all, "slow").await;
        until_last_line(&pods, "p", "ok, ok, quick").await;
    })
    .await;
}

/// Tells whether its clock is near the one that it began with.
const CLOCK: &str = r#"exec perl -e '$| = 1; my $start = time; my $last = "";
    while (1) { my $now = time < $start - 3000 ? "behind" : time > $start + 3000 ? "ahead" : "right";
        print "$now\n" if $now ne $last; $last = $now; select(undef, undef, undef, 0.1) }'"#;

async fn skew() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        running(&pods, shell("p", CLOCK)).await;
        until_last_line(&pods, "p", "right").await;
        let spec = |by: &str| json!({"target": {"pods": ["p"]}, "fault": {"skew": {"by": by}}, "duration": LONG});
        let all = order(&client, "back", spec("-1h")).await;
        until_suffering(&all, "back").await;
        until_last_line(&pods, "p", "behind").await;
        stop(&all, "back").await;
        until_last_line(&pods, "p", "right").await;
        order(&client, "forth", spec("1h")).await;
        until_last_line(&pods, "p", "ahead").await;
        stop(&all, "forth").await;
        until_last_line(&pods, "p", "right").await;
    })
    .await;
}

async fn refused() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut host = shell("host", "exec sleep 1000");
        host["spec"]["hostNetwork"] = json!(true);
        running(&pods, host).await;
        running(&pods, shell("plain", "exec sleep 1000")).await;
        let spec = |pod: &str, fault: Value| json!({"target": {"pods": [pod]}, "fault": fault, "duration": "1s"});
        let all = order(&client, "cut", spec("host", json!({"disconnect": {}}))).await;
        let status = until_ended(&all, "cut").await;
        assert_eq!(status.victims[0].state, VictimState::Refused);
        assert!(status.message.contains("the machine's network"), "{}", status.message);
        told(&client, "host", "ChaosRefused", "cannot be disconnected").await;
        order(&client, "full", spec("plain", json!({"fill": {"volume": "data"}}))).await;
        let status = until_ended(&all, "full").await;
        assert!(status.victims[0].message.contains("windlass.dev/chaos: disk"), "{:?}", status.victims);
        order(&client, "nobody", spec("nobody", json!({"pause": {}}))).await;
        assert_eq!(until_ended(&all, "nobody").await.message, "no running Pod is meant");
        let forever = json!({"target": {"pods": ["plain"]}, "fault": {"pause": {}}, "duration": "2h"});
        order(&client, "forever", forever).await;
        let status = until_chaos(&all, "forever", |status| status.phase == Phase::Failed).await;
        assert_eq!(status.message, "the duration is 7200s, which is not from 1s to 1h");
    })
    .await;
}

async fn rounds() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        for name in ["a", "b", "c"] {
            running(&pods, labelled(shell(name, "exec sleep 1000"), "p")).await;
        }
        let spec = json!({"target": {"selector": {"matchLabels": {"app": "p"}}}, "mode": "One", "fault": {"kill": {}},
            "repeat": {"every": "4s", "times": 2}});
        let all = order(&client, "twice", spec).await;
        let status = until_ended(&all, "twice").await;
        assert_eq!((status.round, status.victims.len()), (2, 1));
        let found = pods.list(&Default::default()).await.unwrap();
        let restarts = |pod: &Pod| pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count;
        // The second kill may still wait for its start.
        eventually(async || {
            let found = pods.list(&Default::default()).await.unwrap();
            (found.items.iter().map(restarts).sum::<i32>() == 2).then_some(())
        })
        .await;
        assert_eq!(found.items.len(), 3);
    })
    .await;
}

async fn killed_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = victim::spawn_surviving(directory.path(), 60);
    let client = victim::connect(directory.path()).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let word = unique();
    running(&pods, shell("paused", &format!("exec sleep {word}"))).await;
    let server = running(&pods, shell("cut", ECHO)).await;
    let to = address_of(&server);
    until_answers(&to, true).await;
    let [process] = ground::until_processes(&word, 1).await[..] else { panic!("one process") };
    let spec = |pod: &str, fault: Value| json!({"target": {"pods": [pod]}, "fault": fault, "duration": LONG});
    let all = order(&client, "pause", spec("paused", json!({"pause": {}}))).await;
    order(&client, "cut", spec("cut", json!({"disconnect": {}}))).await;
    until_suffering(&all, "pause").await;
    until_suffering(&all, "cut").await;
    assert!(is_stopped(process) && !answers(&to));
    cluster.kill();
    eventually(async || (!is_stopped(process)).then_some(())).await;
    until_answers(&to, true).await;

    std::fs::remove_file(directory.path().join("kubeconfig")).unwrap();
    let cluster = victim::spawn_surviving(directory.path(), 60);
    let all: Api<Chaos> = Api::default_namespaced(victim::connect(directory.path()).await);
    for name in ["pause", "cut"] {
        let status = until_ended(&all, name).await;
        assert_eq!(status.victims[0].message, "undone when the node was started anew");
    }
    assert!(!is_stopped(process) && answers(&to), "nothing is done again");
    assert_eq!(all.list(&Default::default()).await.unwrap().iter().map(ResourceExt::name_any).count(), 2);
    cluster.kill();
    windlass_cluster::end_survivors(directory.path());
}
