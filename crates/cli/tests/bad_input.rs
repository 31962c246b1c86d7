//! What goes wrong at a keyboard: each a clear error, nothing lost, an exit code that is not 0.

mod support;

use std::net::TcpListener;
use support::{TestCluster, eventually, failure, success, text};

fn manifest(spec: &str) -> String {
    format!("apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata:\n  name: bad\nspec:\n{spec}")
}

fn check_refused(cluster: &TestCluster, spec: &str, expect: &[&str]) {
    let file = cluster.dir.path().join("bad.yaml");
    std::fs::write(&file, manifest(spec)).expect("the folder can be written");
    let file = file.to_str().expect("a path in UTF-8");
    for said in [
        failure(cluster.windlass().args(["apply", "-f", file])),
        failure(cluster.kubectl_command().args(["apply", "-f", file])),
        failure(cluster.kubectl_command().args(["apply", "--server-side", "-f", file])),
    ] {
        for word in expect {
            assert!(said.contains(word), "{spec:?}: no {word:?} in\n{said}");
        }
    }
    assert!(cluster.object("memcached", "bad").is_none(), "{spec:?} was stored");
}

#[test]
fn bad_resources_are_refused_by_name_of_the_field() {
    let cluster = TestCluster::up(&[]);
    check_refused(&cluster, "  size: 0\n", &["spec.size", "should be greater than or equal to 1"]);
    check_refused(&cluster, "  size: three\n", &["spec.size"]);
    check_refused(&cluster, "  size: 3\n  colour: blue\n", &["spec.colour"]);
    check_refused(&cluster, "  size: 3\n  image: a b\n", &["spec.image", "an image has no spaces"]);
}

#[test]
fn an_image_that_does_not_exist_is_said_on_the_objects() {
    let cluster = TestCluster::up(&[]);
    cluster.kubectl(&["run", "ghost", "--image=no-such-program-anywhere:1.0", "--restart=Never"]);
    eventually("a waiting reason that names the image", || {
        let pod = cluster.object("pod", "ghost").ok_or("no Pod")?;
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        let reason = waiting["reason"].as_str().unwrap_or_default();
        let pulling = ["ErrImagePull", "ImagePullBackOff"].contains(&reason);
        if pulling && waiting["message"].to_string().contains("no-such-program-anywhere") {
            Ok(())
        } else {
            Err(pod["status"].to_string())
        }
    });
    let events = cluster.kubectl(&["events", "--for", "pod/ghost"]);
    assert!(events.contains("no-such-program-anywhere"), "{events}");
    cluster.kubectl(&["delete", "pod", "ghost"]);
}

#[test]
fn files_that_cannot_be_read_change_nothing() {
    let cluster = TestCluster::new();
    let broken = cluster.dir.path().join("broken.yaml");
    std::fs::write(&broken, "apiVersion: v1\nkind: [ConfigMap\n").unwrap();
    let said = failure(cluster.windlass().args(["up", "--detach", "-f", broken.to_str().unwrap()]));
    assert!(said.contains("broken.yaml") && said.contains("not valid YAML"), "{said}");
    let said = failure(cluster.windlass().args(["up", "--detach", "-f", "missing.yaml"]));
    assert!(said.contains("missing.yaml") && said.contains("No such file"), "{said}");
    assert!(!cluster.state().exists(), "a cluster was started all the same");
}

#[test]
fn a_folder_in_use_names_its_holder() {
    let cluster = TestCluster::up(&["--profile", "bare"]);
    let said = failure(cluster.windlass().args(["up", "--detach", "--profile", "bare"]));
    assert!(said.contains("in use") && said.contains(&cluster.server_pid().to_string()), "{said}");
}

#[test]
fn a_port_in_use_says_which() {
    let cluster = TestCluster::up(&["--profile", "bare"]);
    let server = cluster.kubectl(&["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]);
    let address = server.trim_start_matches("https://").to_owned();
    success(cluster.windlass().arg("down"));
    let _taken = eventually("the port to be free", || TcpListener::bind(&address).map_err(|error| error.to_string()));
    let said = failure(cluster.windlass().args(["up", "--detach", "--profile", "bare"]));
    assert!(said.contains(&address) && said.contains("in use"), "{said}");
}

#[test]
fn commands_without_a_cluster_say_how_to_get_one() {
    let cluster = TestCluster::new();
    for arguments in [&["get", "pods"][..], &["status"], &["down"]] {
        let output = cluster.windlass().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains("no cluster"), "{}", text(&output));
    }
}
