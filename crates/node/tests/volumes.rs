//! Volumes that are images, on a real cluster: `cargo test -p windlass-node --test volumes [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Api, LogParams};
use serde_json::{Value, json};
use windlass_node::image::{ImageError, ImageStore};

use ground::{Test, create, delete, ended, on_cluster, once, shell, told, until};

const TESTS: &[Test] = &[
    ("an_image_is_mounted_read_only", || Box::pin(mounted())),
    ("an_image_that_is_not_there_holds_its_containers_up", || Box::pin(missing())),
];

fn main() {
    ground::run(TESTS);
}

/// An image with two files, in the store of a cluster.
async fn add(directory: &std::path::Path) -> ImageStore {
    let files = directory.join("files");
    std::fs::create_dir_all(files.join("sub")).unwrap();
    std::fs::write(files.join("top"), "one\n").unwrap();
    std::fs::write(files.join("sub/inner"), "two\n").unwrap();
    let store = ImageStore::new(directory.join("images"));
    store.add("content:1", &files).await.unwrap();
    store
}

fn with_image(mut pod: Value, mounts: Value, policy: &str) -> Value {
    pod["spec"]["volumes"] = json!([{"name": "i", "image": {"reference": "content:1", "pullPolicy": policy}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = mounts;
    pod
}

async fn mounted() {
    on_cluster(async |client, directory| {
        let store = add(directory).await;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let script =
            "cat /all/top /part/inner; (touch /all/new || touch /part/new) 2> /dev/null || echo kept; exec sleep 1000";
        let mounts = json!([{"name": "i", "mountPath": "/all"}, {"name": "i", "mountPath": "/part", "subPath": "sub"}]);
        create(&pods, with_image(shell("p", script), mounts, "IfNotPresent")).await;
        until(&pods, "p", |status| status.ready).await;
        let said = ground::eventually(async || {
            pods.logs("p", &LogParams::default()).await.ok().filter(|log| log.contains("kept"))
        });
        assert!(said.await.starts_with("one\ntwo\n"));
        assert!(matches!(store.remove("content:1", false).await, Err(ImageError::InUse(_))), "a Pod has it mounted");

        let nowhere = json!([{"name": "i", "mountPath": "/part", "subPath": "none"}]);
        create(&pods, with_image(once("q", "true"), nowhere, "IfNotPresent")).await;
        told(&client, "q", "Failed", "\"none\": it is not there").await;
        assert!(!directory.join("images/content").join("none").exists());
        delete(&pods, "p").await;
        delete(&pods, "q").await;
        store.remove("content:1", false).await.unwrap();
    })
    .await;
}

fn waits_for(reason: &'static str) -> impl Fn(&ContainerStatus) -> bool {
    move |status| {
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.and_then(|waiting| waiting.reason.as_deref()) == Some(reason)
    }
}

async fn missing() {
    on_cluster(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mounts = || json!([{"name": "i", "mountPath": "/all"}]);
        create(&pods, with_image(once("never", "cat /all/top"), mounts(), "Never")).await;
        create(&pods, with_image(once("later", "cat /all/top"), mounts(), "IfNotPresent")).await;
        until(&pods, "never", waits_for("ErrImageNeverPull")).await;
        let pod = until(&pods, "later", waits_for("ImagePullBackOff")).await;
        let state = pod.status.unwrap().container_statuses.unwrap()[0].state.clone().unwrap();
        let message = state.waiting.unwrap().message.unwrap();
        assert!(message.starts_with("Back-off pulling image \"content:1\""), "{message}");
        told(&client, "later", "Failed", "Failed to pull image \"content:1\"").await;
        add(directory).await;
        for name in ["never", "later"] {
            assert_eq!(ended(&pods, name).await.exit_code, 0, "{name}");
        }
    })
    .await;
}
