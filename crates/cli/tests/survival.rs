//! kill -9 of the cluster while Pods come, run and go: the next start finds their processes again, none is doubled, none
//! that ran is lost.
//!
//! `WINDLASS_PODS` says how many, `WINDLASS_ROUNDS` how often; `cargo xtask soak survival` asks for more.

mod support;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use support::{TestCluster, eventually, success};

const PODS_DEFAULT: usize = 12;
const ROUNDS_DEFAULT: usize = 3;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A Deployment without Pods whose program is known by an argument of its own.
fn deployment(word: &str) -> String {
    let container = format!("{{name: c, image: host, command: [/bin/sleep, '{word}']}}");
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: many}}\nspec:\n  replicas: 0\n  \
         selector: {{matchLabels: {{app: many}}}}\n  template:\n    metadata: {{labels: {{app: many}}}}\n    \
         spec: {{terminationGracePeriodSeconds: 0, containers: [{container}]}}\n"
    )
}

/// The processes of the Deployment: number and start time, which together name a process for good.
fn processes(word: &str) -> BTreeSet<(u32, String)> {
    let known = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_meant = line.split(|byte| *byte == 0).eq([&b"/bin/sleep"[..], word.as_bytes(), b""]);
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let start = stat.rsplit(')').next()?.split_whitespace().nth(19)?.to_owned();
        is_meant.then_some((pid, start))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(known).collect()
}

fn wait_for(cluster: &TestCluster, word: &str, pods: usize) -> BTreeSet<(u32, String)> {
    eventually("every Pod to be ready, with one process each", || {
        let ready = cluster.kubectl(&["get", "deployment", "many", "-o", "jsonpath={.status.readyReplicas}"]);
        let names = cluster.kubectl(&["get", "pods", "-l", "app=many", "-o", "name"]);
        let found = (ready.trim().parse().unwrap_or(0), names.lines().count(), processes(word).len());
        if found == (pods, pods, pods) { Ok(()) } else { Err(format!("ready, Pods, processes: {found:?} of {pods}")) }
    });
    processes(word)
}

#[test]
fn pods_survive_kill_9_at_any_moment() {
    let (pods, rounds) = (setting("WINDLASS_PODS", PODS_DEFAULT), setting("WINDLASS_ROUNDS", ROUNDS_DEFAULT));
    let word = format!("{}.5", 100_000_000 + std::process::id());
    let cluster = TestCluster::new();
    let file = cluster.state().with_file_name("many.yaml");
    std::fs::write(&file, deployment(&word)).expect("the folder is there");
    cluster.start(&["--no-operators", "-f", file.to_str().expect("a plain path")]);
    let mut before = BTreeSet::new();
    for round in 0..rounds {
        let (all, half) = (pods, pods / 2);
        let wanted = if round % 2 == 0 { all } else { half };
        cluster.kubectl(&["scale", "deployment", "many", &format!("--replicas={wanted}")]);
        // Not to wait for something: the moment of the kill is what varies.
        std::thread::sleep(Duration::from_millis(round as u64 * 173 % 1_500));
        let pid = cluster.server_pid().to_string();
        success(Command::new("kill").args(["-9", &pid]));
        let status = format!("/proc/{pid}");
        eventually("the killed process to be gone", || match std::fs::exists(&status) {
            Ok(true) => Err("its memory is being freed".to_owned()),
            _ => Ok(()),
        });
        cluster.start(&["--no-operators"]);
        let now = wait_for(&cluster, &word, wanted);
        let (fewer, more) = if wanted == all { (&before, &now) } else { (&now, &before) };
        assert!(fewer.is_subset(more), "round {round}: a process was lost or started twice\n{fewer:?}\n{more:?}");
        before = now;
    }
    println!("{rounds} rounds with {pods} Pods, no process lost, none doubled");
}
