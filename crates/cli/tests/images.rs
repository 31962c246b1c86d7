//! Images that people bring: a folder, an OCI archive, a Docker archive, each run as a Pod.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use sha2::{Digest, Sha256};
use support::{TestCluster, failure, memcached, success};

/// The files of a real program: those of the image that the store makes of Debian's memcached.
fn files(cluster: &TestCluster) -> PathBuf {
    success(cluster.windlass().args(["image", "add", "memcached:1.6"]));
    let list = success(cluster.windlass().args(["image", "ls"]));
    assert!(list.lines().any(|line| line.starts_with("memcached:1.6 ")), "{list}");
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache"));
    let record = fs::read(cache.join("windlass/images/refs/memcached@1.6")).expect("the store keeps a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("the record is JSON");
    cache.join("windlass/images/content").join(record["id"].as_str().expect("an id")).join("rootfs")
}

fn layer(files: &Path) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    archive.follow_symlinks(false);
    archive.append_dir_all("", files).expect("the files can be read");
    archive.into_inner().expect("an archive in memory").finish().expect("a stream in memory")
}

fn configuration() -> Vec<u8> {
    let config = json!({
        "Entrypoint": ["/usr/bin/memcached"], "Cmd": ["-u", "nobody", "-p", "22122"], "Env": ["A=1"], "WorkingDir": "/",
    });
    json!({ "architecture": "amd64", "os": "linux", "config": config }).to_string().into_bytes()
}

fn archive(path: &Path, entries: &[(String, Vec<u8>)]) {
    let mut archive = tar::Builder::new(fs::File::create(path).expect("the folder can be written"));
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, &content[..]).expect("the archive can be written");
    }
    archive.into_inner().and_then(|mut file| file.flush()).expect("the archive can be written");
}

fn oci_archive(path: &Path, layer: &[u8]) {
    let mut entries = vec![("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec())];
    let mut blob = |content: Vec<u8>| {
        let digest = hex::encode(Sha256::digest(&content));
        let described = json!({ "digest": format!("sha256:{digest}"), "size": content.len() });
        entries.push((format!("blobs/sha256/{digest}"), content));
        described
    };
    let (config, layer) = (blob(configuration()), blob(layer.to_vec()));
    let manifest = blob(json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string().into_bytes());
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] }).to_string().into_bytes();
    entries.push(("index.json".to_owned(), index));
    archive(path, &entries);
}

fn docker_archive(path: &Path, layer: &[u8]) {
    let manifest = json!([{ "Config": "config.json", "RepoTags": ["mine:1"], "Layers": ["layer.tar"] }]);
    let entry = |name: &str, content: &[u8]| (name.to_owned(), content.to_vec());
    let manifest = manifest.to_string();
    let entries = [
        entry("manifest.json", manifest.as_bytes()),
        entry("config.json", &configuration()),
        entry("layer.tar", layer),
    ];
    archive(path, &entries);
}

fn folder(path: &Path, files: &Path) {
    fs::create_dir(path).expect("the folder can be made");
    success(std::process::Command::new("cp").arg("-a").arg(files).arg(path.join("rootfs")));
    let config = json!({
        "entrypoint": ["/usr/bin/memcached"], "cmd": ["-u", "nobody", "-p", "22122"], "env": [], "workdir": "/",
        "user": "", "stop_signal": null,
    });
    fs::write(path.join("image.json"), config.to_string()).expect("the folder can be written");
}

#[test]
fn images_that_people_bring_run() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let files = files(&cluster);
    let layer = layer(&files);
    let path = |name: &str| cluster.dir.path().join(name);
    folder(&path("folder"), &files);
    oci_archive(&path("oci"), &layer);
    docker_archive(&path("docker"), &layer);

    for form in ["folder", "oci", "docker"] {
        let name = format!("windlass-test-{form}:1.0");
        success(cluster.windlass().args(["image", "add", &name]).arg(path(form)));
        let image = format!("--image={name}");
        cluster.kubectl(&["run", form, &image, "--image-pull-policy=Never", "--restart=Never"]);
        cluster.kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", &format!("pod/{form}")]);
        let pod = cluster.object("pod", form).expect("the Pod is there");
        let address = format!("{}:22122", pod["status"]["podIP"].as_str().expect("an address"));
        let answer = support::eventually("the program to answer", || memcached(&address, "version\r\n", "\r\n"));
        assert!(answer.starts_with("VERSION 1.6"), "{form}: {answer}");
    }
    let remove = |form: &str| {
        let mut command = cluster.windlass();
        command.args(["image", "rm", &format!("windlass-test-{form}:1.0")]);
        command
    };
    let said = failure(&mut remove("folder"));
    assert!(said.contains("in use by a running Pod") && said.contains("--force"), "{said}");
    cluster.kubectl(&["delete", "pod", "folder", "oci", "docker", "--now"]);
    for form in ["folder", "oci", "docker"] {
        support::eventually("the image is let go", || {
            let output = remove(form).output().expect("windlass runs");
            if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
        });
    }
    assert!(!success(cluster.windlass().args(["image", "ls"])).contains("windlass-test-"));
}

#[test]
fn what_is_no_image_is_said_and_not_added() {
    let cluster = TestCluster::new();
    let path = cluster.dir.path().join("file");
    archive(&path, &[("readme".to_owned(), b"nothing".to_vec())]);
    let said = failure(cluster.windlass().args(["image", "add", "windlass-test-none:1.0"]).arg(&path));
    assert!(said.contains("no image") && said.contains("index.json"), "{said}");
    let said = failure(cluster.windlass().args(["image", "add", "Not A Name"]).arg(&path));
    assert!(said.contains("Not A Name"), "{said}");
    let said = failure(cluster.windlass().args(["image", "add", "windlass-test-none:1.0", "missing.tar"]));
    assert!(said.contains("missing.tar"), "{said}");
    assert!(!success(cluster.windlass().args(["image", "ls"])).contains("windlass-test-none"));
}
