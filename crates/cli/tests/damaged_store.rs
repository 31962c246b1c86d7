//! A store whose file was damaged while the cluster was down: the start says which file and what to do, or all is there.

mod support;

use std::fs;
use std::path::PathBuf;

use support::{TestCluster, failure, success, text};

/// How much is stored: enough that the file has pages of every sort.
const OBJECTS: usize = 30;

struct Stopped {
    cluster: TestCluster,
    file: PathBuf,
    whole: Vec<u8>,
}

/// A cluster with objects that was stopped as it should be.
fn stopped() -> Stopped {
    let cluster = TestCluster::new();
    cluster.start(&["--profile", "bare"]);
    let list: Vec<String> = (0..OBJECTS)
        .map(|number| {
            let value = "x".repeat(200 * number);
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kept-{number:02}}}\ndata: {{value: \"{value}\"}}\n"
            )
        })
        .collect();
    let manifest = cluster.dir.path().join("kept.yaml");
    fs::write(&manifest, list.join("---\n")).expect("the folder can be written");
    cluster.kubectl(&["create", "-f", manifest.to_str().expect("a path in UTF-8")]);
    success(cluster.windlass().arg("down"));
    let entries = fs::read_dir(cluster.state()).expect("the state is a folder").flatten();
    let file = entries.map(|entry| entry.path()).find(|path| path.file_stem().is_some_and(|name| name == "store"));
    let file = file.expect("the store is a file of the state");
    let whole = fs::read(&file).expect("the store can be read");
    Stopped { cluster, file, whole }
}

impl Stopped {
    /// Starts on a file with these bytes. Whether it was refused.
    fn start_on(&self, bytes: &[u8], what: &str) -> bool {
        fs::write(&self.file, bytes).expect("the store can be written");
        let output = self.cluster.windlass().args(["up", "--detach", "--profile", "bare"]).output();
        let output = output.expect("windlass runs");
        let said = text(&output);
        assert!(!said.contains("panicked"), "{what}: {said}");
        if !output.status.success() {
            let names_the_file = said.contains(&*self.file.to_string_lossy());
            assert!(names_the_file && said.contains("restore it from a copy"), "{what}: not clear: {said}");
            return true;
        }
        self.check_all_is_there(what);
        success(self.cluster.windlass().arg("down"));
        false
    }

    fn check_all_is_there(&self, what: &str) {
        let found = self.cluster.list(&["configmaps"]);
        for number in 0..OBJECTS {
            let name = format!("kept-{number:02}");
            let object = found.iter().find(|object| object["metadata"]["name"] == name);
            let value = object.and_then(|object| object["data"]["value"].as_str());
            assert_eq!(value.map(str::len), Some(200 * number), "{what}: {name}");
        }
    }
}

#[test]
fn a_damaged_store_is_refused_clearly_or_whole() {
    let stopped = stopped();
    let whole = &stopped.whole;
    let mut refused = 0;
    for length in [0, 100, 4096, whole.len() / 2, whole.len() - 1] {
        refused += usize::from(stopped.start_on(&whole[..length], &format!("cut to {length} bytes")));
    }
    let places = [0, 9, 64, 600, 4096, 8192, 50_000, 100_000, whole.len() / 3, whole.len() / 2, whole.len() - 100];
    for place in places {
        let mut damaged = whole.clone();
        let end = (place + 64).min(damaged.len());
        damaged[place..end].iter_mut().for_each(|byte| *byte ^= 0xa5);
        refused += usize::from(stopped.start_on(&damaged, &format!("64 bytes at {place}")));
    }
    assert!(refused >= 5, "damage was noticed only {refused} times");
    assert!(!stopped.start_on(whole, "as it was"), "what is put back is taken");
}

#[test]
fn a_store_that_was_moved_away_gives_an_empty_cluster() {
    let stopped = stopped();
    fs::write(&stopped.file, "not a store").expect("the store can be written");
    failure(stopped.cluster.windlass().args(["up", "--detach", "--profile", "bare"]));
    fs::rename(&stopped.file, stopped.file.with_extension("damaged")).expect("the store can be moved");
    stopped.cluster.start(&["--profile", "bare"]);
    assert!(stopped.cluster.object("configmap", "kept-01").is_none());
    assert!(stopped.cluster.object("namespace", "default").is_some());
}
