//! What tests of faults share: programs that tell what they find, orders of chaos, and looks at what became of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use windlass_node::chaos::{Chaos, ChaosStatus, Phase, Victim, VictimState};

use crate::ground::{create, eventually, shell, until};

/// What counts as no answer.
const SHORT: Duration = Duration::from_millis(1500);

/// Says a line back.
pub(crate) const ECHO: &str = r#"exec perl -MIO::Socket::INET -e '$SIG{CHLD} = "IGNORE";
    my $s = IO::Socket::INET->new(Listen => 50, LocalPort => 7000, ReuseAddr => 1) or die $!;
    while (1) { my $c = $s->accept or next; if (!fork) { $c->autoflush(1); while (<$c>) { print $c $_ } exit } }'"#;

/// Asks at `TO` again and again, each time anew, and tells what it found.
pub(crate) const ASKER: &str = r#"exec perl -MIO::Socket::INET -e '$| = 1; my $last = "";
    while (1) { my $c = IO::Socket::INET->new(PeerAddr => $ENV{TO}, Timeout => 1); my $now = "no";
        if ($c) { $c->autoflush(1); print $c "x\n"; $now = "yes" if $ENV{MUTE} || defined(<$c>) }
        print "$now\n" if $now ne $last; $last = $now; select(undef, undef, undef, 0.1) }'"#;

pub(crate) fn labelled(mut pod: Value, app: &str) -> Value {
    pod["metadata"]["labels"] = json!({"app": app});
    pod
}

pub(crate) fn asker(name: &str, to: &str, mute: bool) -> Value {
    let mut pod = labelled(shell(name, ASKER), name);
    let mute = if mute { "1" } else { "" };
    pod["spec"]["containers"][0]["env"] = json!([{"name": "TO", "value": to}, {"name": "MUTE", "value": mute}]);
    pod
}

pub(crate) async fn running(pods: &Api<Pod>, pod: Value) -> Pod {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    create(pods, pod).await;
    until(pods, &name, |status| status.ready).await
}

pub(crate) fn address_of(pod: &Pod) -> String {
    format!("{}:7000", pod.status.as_ref().unwrap().pod_ip.as_ref().unwrap())
}

pub(crate) async fn order(client: &Client, name: &str, spec: Value) -> Api<Chaos> {
    let all: Api<Chaos> = Api::default_namespaced(client.clone());
    let chaos =
        json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "Chaos", "metadata": {"name": name}, "spec": spec});
    all.create(&PostParams::default(), &serde_json::from_value(chaos).unwrap()).await.unwrap();
    all
}

pub(crate) async fn until_chaos(all: &Api<Chaos>, name: &str, holds: impl Fn(&ChaosStatus) -> bool) -> ChaosStatus {
    let condition = |chaos: Option<&Chaos>| chaos.and_then(|chaos| chaos.status.as_ref()).is_some_and(&holds);
    await_condition(all.clone(), name, condition).await.unwrap().unwrap().status.unwrap()
}

/// Waits until everybody suffers.
pub(crate) async fn until_suffering(all: &Api<Chaos>, name: &str) -> Vec<Victim> {
    let is_there = |status: &ChaosStatus| {
        let suffering = |victim: &Victim| victim.state == VictimState::Suffering;
        assert!(!status.victims.iter().any(|victim| victim.state == VictimState::Refused), "{status:#?}");
        !status.victims.is_empty() && status.victims.iter().all(suffering)
    };
    until_chaos(all, name, is_there).await.victims
}

pub(crate) async fn until_ended(all: &Api<Chaos>, name: &str) -> ChaosStatus {
    until_chaos(all, name, |status| status.phase == Phase::Ended).await
}

pub(crate) async fn stop(all: &Api<Chaos>, name: &str) {
    all.delete(name, &DeleteParams::default()).await.unwrap();
    await_condition(all.clone(), name, |chaos: Option<&Chaos>| chaos.is_none()).await.unwrap();
}

/// Whether an echo answers at an address in reasonable time.
pub(crate) fn answers(address: &str) -> bool {
    let address: SocketAddr = address.parse().unwrap();
    let Ok(mut stream) = TcpStream::connect_timeout(&address, SHORT) else { return false };
    stream.set_read_timeout(Some(SHORT)).unwrap();
    stream.write_all(b"x\n").is_ok() && stream.read_exact(&mut [0; 2]).is_ok()
}

pub(crate) async fn until_answers(address: &str, expect: bool) {
    eventually(async || (answers(address) == expect).then_some(())).await;
}

pub(crate) async fn until_last_line(pods: &Api<Pod>, name: &str, expect: &str) {
    eventually(async || {
        let text = pods.logs(name, &LogParams::default()).await.unwrap();
        (text.lines().last() == Some(expect)).then_some(())
    })
    .await;
}

/// Whether a process is stopped.
pub(crate) fn is_stopped(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
}
