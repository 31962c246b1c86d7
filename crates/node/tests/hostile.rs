//! Pods that mean harm, or have lost control of themselves: the node stays healthy, the host's files stay as they are,
//! nothing is left, and what happened is said. `cargo test -p windlass-node --test hostile [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ground::{
    Test, create, delete, directory_of, ended, eventually, on_cluster, once, processes, processes_with, shell, told,
    unique, until, until_processes,
};
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, Pod};
use kube::api::{Api, LogParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

const TESTS: &[Test] = &[
    ("a_fork_bomb_is_ended_and_leaves_nothing", || Box::pin(fork_bomb())),
    ("a_flood_of_output_is_bounded_and_its_end_is_shown", || Box::pin(flood())),
    ("a_daemon_that_hides_ends_with_its_pod", || Box::pin(daemon())),
    ("a_program_that_ends_at_once_is_started_ever_more_seldom", || Box::pin(crash_loop())),
    ("links_in_a_volume_do_not_lead_to_the_host", || Box::pin(links())),
    ("what_the_node_writes_cannot_be_changed_in_a_pod", || Box::pin(read_only())),
    ("last_words_without_end_are_cut", || Box::pin(last_words())),
    ("a_pod_that_fills_its_volume_is_evicted", || Box::pin(full_volume())),
    ("strange_files_are_removed_with_their_pod", || Box::pin(strange_files())),
    ("a_probe_that_hangs_or_talks_without_end_hurts_nobody", || Box::pin(probes())),
];

fn main() {
    ground::run(TESTS);
}

async fn fork_bomb() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut neighbour = shell("neighbour", "exec sleep 1000");
        let probe = json!({"exec": {"command": ["/bin/true"]}, "periodSeconds": 1, "timeoutSeconds": 20});
        neighbour["spec"]["containers"][0]["livenessProbe"] = probe;
        create(&pods, neighbour).await;
        until(&pods, "neighbour", |status| status.ready).await;

        let word = unique();
        // Twice as many every quarter of a second; nobody waits for anybody.
        let bomb = format!("exec perl -e 'while (1) {{ fork; select undef, undef, undef, 0.25 }}' {word}");
        create(&pods, once("bomb", &bomb)).await;
        let how = ended(&pods, "bomb").await;
        assert_eq!((how.exit_code, how.reason.as_deref()), (137, Some("TooManyProcesses")));
        assert_eq!(processes_with(&word), [0; 0], "all of them ended with the container");
        told(&client, "bomb", "TooManyProcesses", "a container may have").await;
        let neighbour = until(&pods, "neighbour", |status| status.ready).await;
        assert_eq!(neighbour.status.unwrap().container_statuses.unwrap()[0].restart_count, 0);
        delete(&pods, "bomb").await;
    })
    .await;
}

/// What a directory takes on the disk.
fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

async fn flood() {
    on_cluster(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let lines = "head -c 60000000 /dev/zero | tr '\\0' x | fold -w 999; echo; echo the last line";
        let line = "head -c 60000000 /dev/zero | tr '\\0' y; echo; echo the last line";
        create(&pods, once("lines", lines)).await;
        create(&pods, once("line", line)).await;
        for name in ["lines", "line"] {
            assert_eq!(ended(&pods, name).await.exit_code, 0);
            let last = LogParams { tail_lines: Some(1), ..LogParams::default() };
            assert_eq!(pods.logs(name, &last).await.unwrap(), "the last line\n", "{name}");
        }
        // Five files of ten mebibytes for each of the two.
        let size = size(&directory.join("node/logs"));
        assert!((50 << 20..101 << 20).contains(&size), "{} MiB", size >> 20);
    })
    .await;
}

/// Forks twice, leaves its session, closes everything, and becomes `sleep`.
const DAEMON: &str = r#"perl -MPOSIX -e 'exit if fork; setsid; exit if fork; chdir "/"; POSIX::close($_) for 0..255;
    $SIG{$_} = "IGNORE" for qw(TERM INT HUP); exec "sleep", $ARGV[0]'"#;

async fn daemon() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let (one, other) = (unique(), unique());
        create(&pods, shell("lives", &format!("{DAEMON} {one}; exec sleep 1000"))).await;
        // This one's program ends as soon as the daemon is there.
        create(&pods, once("ends", &format!("{DAEMON} {other}; exit 0"))).await;
        until_processes(&one, 1).await;
        ended(&pods, "ends").await;
        until_processes(&other, 0).await;
        assert_eq!(processes(&one).len(), 1);
        delete(&pods, "lives").await;
        assert!(processes(&one).is_empty());
    })
    .await;
}

async fn crash_loop() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        for index in 0..8 {
            create(&pods, shell(&format!("p-{index}"), "exit 7")).await;
        }
        let waits = |text: &'static str| {
            move |status: &ContainerStatus| {
                let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
                let message = waiting.and_then(|waiting| waiting.message.as_deref()).unwrap_or_default();
                waiting.is_some_and(|w| w.reason.as_deref() == Some("CrashLoopBackOff")) && message.contains(text)
            }
        };
        for index in 0..8 {
            until(&pods, &format!("p-{index}"), waits("back-off")).await;
        }
        let pod = until(&pods, "p-0", waits("back-off 20s")).await;
        let status = &pod.status.unwrap().container_statuses.unwrap()[0];
        assert_eq!(status.restart_count, 2);
        let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()).unwrap();
        assert_eq!(last.exit_code, 7);
        told(&client, "p-0", "BackOff", "Back-off restarting failed container").await;
    })
    .await;
}

async fn links() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let host = tempfile::tempdir().unwrap();
        std::fs::write(host.path().join("file"), "the host's").unwrap();
        let target = host.path().display();
        let mut pod = once("p", "echo written > /sub/file; echo written > /sub/new");
        let make =
            format!("ln -s {target} /v/escape; ln -s ../../../../../../../..{target} /v/relative; mkdir /v/good");
        pod["spec"]["initContainers"] = json!([{"name": "i", "image": "host", "command": ["/bin/sh", "-c", make],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]);
        pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        for (name, path) in [("escape", "escape"), ("deep", "escape/deep"), ("relative", "relative"), ("good", "good")]
        {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = json!(name);
            pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/sub", "subPath": path}]);
            create(&pods, pod).await;
        }
        for name in ["escape", "deep", "relative"] {
            let refused = |status: &ContainerStatus| {
                let waiting = status.state.as_ref().and_then(|state| state.waiting.clone()).unwrap_or_default();
                let message = waiting.message.unwrap_or_default();
                waiting.reason.as_deref() == Some("CreateContainerConfigError")
                    && message.contains("failed to prepare subPath for volumeMount \"v\" of container \"c\"")
                    && message.contains("leads out of the volume")
            };
            until(&pods, name, refused).await;
            told(&client, name, "Failed", "leads out of the volume").await;
        }
        assert_eq!(ended(&pods, "good").await.exit_code, 0);
        let left: Vec<_> = std::fs::read_dir(host.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["file"]);
        assert_eq!(std::fs::read_to_string(host.path().join("file")).unwrap(), "the host's");
    })
    .await;
}

/// Whatever works of this is printed.
const TAMPERS: &str = "did() { echo it worked: $1; }
echo x > /etc/m/k && did write; ln -s /etc/passwd /etc/m/x && did link
mount -o remount,bind,rw /etc/m && did remount; umount /etc/m && did unmount
unshare -Urm sh -c 'mount -o remount,bind,rw /etc/m' && did remount-in-another-namespace
mv /dev/termination-log /dev/x && did move; rm -f /dev/termination-log && did remove
mount -t tmpfs none /mnt && did mount; mknod /tmp/disk b 254 0 && did make-a-disk; true";

async fn read_only() {
    on_cluster(async |client, directory| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = |text: &str| serde_json::from_value(json!({"metadata": {"name": "m"}, "data": {"k": text}})).unwrap();
        maps.create(&PostParams::default(), &map("one")).await.unwrap();
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = once("p", &format!("{TAMPERS}; until grep -q two /etc/m/k; do sleep 0.1; done"));
        pod["spec"]["volumes"] = json!([{"name": "m", "configMap": {"name": "m"}}]);
        let mounts = json!([{"name": "m", "mountPath": "/etc/m"}]);
        pod["spec"]["containers"][0]["volumeMounts"] = mounts;
        let pod = create(&pods, pod).await;
        until(&pods, "p", |status| status.ready).await;
        maps.replace("m", &PostParams::default(), &map("two")).await.unwrap();
        assert_eq!(ended(&pods, "p").await.exit_code, 0);
        let log = pods.logs("p", &LogParams::default()).await.unwrap();
        assert!(!log.contains("it worked"), "{log}");
        let volume = directory_of(directory, &pod).join("volumes/m");
        assert_eq!(std::fs::read_to_string(volume.join("k")).unwrap(), "two");
    })
    .await;
}

async fn last_words() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        create(&pods, once("p", "truncate -s 1T /dev/termination-log; echo the end >> /dev/termination-log; exit 1"))
            .await;
        let message = ended(&pods, "p").await.message.unwrap();
        assert!(message.len() == 4096 && message.ends_with("the end\n"), "{} bytes", message.len());
        let mut pod = once("log", "echo nothing is written; exit 1");
        pod["spec"]["containers"][0]["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
        create(&pods, pod).await;
        assert_eq!(ended(&pods, "log").await.message.as_deref(), Some("nothing is written\n"));
    })
    .await;
}

async fn full_volume() {
    on_cluster(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let word = unique();
        let mut full =
            shell("full", &format!("head -c 3000000 /dev/zero > /v/file; trap '' TERM; sleep {word}; sleep {word}"));
        full["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]);
        full["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
        full["spec"]["terminationGracePeriodSeconds"] = json!(60);
        let mut holes = full.clone();
        holes["metadata"]["name"] = json!("holes");
        holes["spec"]["containers"][0]["command"][2] = json!("truncate -s 1T /v/file; ln -s / /v/all; exec sleep 1000");
        create(&pods, holes).await;
        let mut layer = shell("layer", "head -c 3000000 /dev/zero > /var/file; exec sleep 1000");
        layer["spec"]["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": "2Mi"}});
        create(&pods, layer).await;
        until(&pods, "holes", |status| status.ready).await;
        let pod = create(&pods, full).await;
        let evicted = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.is_some_and(|status| status.reason.as_deref() == Some("Evicted"))
        };
        for (name, why) in [
            ("full", "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "),
            ("layer", "Container c exceeded its local ephemeral storage limit \"2Mi\". "),
        ] {
            let pod = await_condition(pods.clone(), name, evicted).await.unwrap().unwrap();
            let status = pod.status.unwrap();
            assert_eq!((status.phase.as_deref(), status.message.as_deref()), (Some("Failed"), Some(why)));
            told(&client, name, "Evicted", why).await;
        }
        until_processes(&word, 0).await;
        until(&pods, "holes", |status| status.ready).await;
        // The object of a Pod that has ended goes at once, its files soon after.
        delete(&pods, "full").await;
        eventually(async || (!directory_of(directory, &pod).exists()).then_some(())).await;
    })
    .await;
}

/// Pipes, sockets, holes, closed directories, and one directory in the other beyond any path.
const STRANGE: &str = r#"cd /v; mkfifo pipe; truncate -s 1T huge; mkdir -p closed/inner; touch closed/inner/x; chmod 000 closed
perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("socket")) or die'
perl -e '$d = "d" x 100; for (1..300) { mkdir $d or die $!; chdir $d }'
printf 'odd \n name' | xargs -0 touch; ln -s / all; echo done; exec sleep 1000"#;

async fn strange_files() {
    on_cluster(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = shell("p", STRANGE);
        pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
        let pod = create(&pods, pod).await;
        until(&pods, "p", |status| status.ready).await;
        eventually(async || pods.logs("p", &LogParams::default()).await.ok().filter(|log| log == "done\n")).await;
        delete(&pods, "p").await;
        assert!(!directory_of(directory, &pod).exists());
        assert!(Path::new("/etc").is_dir(), "a link is not followed");
    })
    .await;
}

async fn probes() {
    on_cluster(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let word = unique();
        let probe = |script: &str| {
            json!({"exec": {"command": ["/bin/sh", "-c", script]}, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 100})
        };
        let mut hangs = shell("hangs", "exec sleep 1000");
        hangs["spec"]["containers"][0]["readinessProbe"] = probe(&format!("sleep {word}; true"));
        create(&pods, hangs).await;
        let mut talks = shell("talks", "exec sleep 1000");
        let loud = "yes | head -c 3000000; yes | head -c 3000000 >&2";
        talks["spec"]["containers"][0]["readinessProbe"] = probe(loud);
        talks["spec"]["containers"][0]["readinessProbe"]["timeoutSeconds"] = json!(20);
        create(&pods, talks).await;
        until(&pods, "talks", |status| status.ready).await;
        told(&client, "hangs", "Unhealthy", "timed out after 1s").await;
        // Each round begins one and ends it.
        for _ in 0..3 {
            until_processes(&word, 1).await;
            until_processes(&word, 0).await;
        }
        assert!(until(&pods, "hangs", |_| true).await.status.unwrap().phase.as_deref() == Some("Running"));
    })
    .await;
}
