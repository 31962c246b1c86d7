//! A machine that is not as it should be: a full disk, folders that may not be written, a user without rights.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::{TestCluster, eventually, failure, kubectl, success, text};

/// A namespace of mounts in which a small file system stands in for a disk that can be filled.
///
/// It needs no root: the user is root in a user namespace of their own. It ends when the keeper's input closes, that is
/// with the test, however the test ends.
struct SmallDisk {
    keeper: Child,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new(size: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let mut keeper = Command::new("unshare")
            .args(["--user", "--mount", "--map-root-user", "sh", "-ec"])
            .arg("mount -t tmpfs -o size=$1 tmpfs $2; echo mounted; cat")
            .args(["sh", size])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut said = [0; 8];
        let output = keeper.stdout.as_mut().expect("its output was asked for");
        std::io::Read::read_exact(output, &mut said).expect("the small file system is mounted");
        Self { keeper, folder }
    }

    /// A command on a machine with that disk.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--preserve-credentials", "--target"]).arg(self.keeper.id().to_string());
        command.arg(program.as_ref()).stdin(Stdio::null()).env("HOME", self.folder.path());
        command
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn windlass(&self) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_windlass"));
        command.arg("--dir").arg(self.state());
        command
    }

    fn kubectl(&self) -> Command {
        let mut command = self.command(kubectl());
        // Nothing but the cluster may write to the disk, so that it alone meets the end of it.
        command.env("KUBECONFIG", self.state().join("kubeconfig")).env("KUBECACHEDIR", env!("CARGO_TARGET_TMPDIR"));
        command
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let filler = self.folder.path().join("filler");
        let output =
            self.command("dd").args(["if=/dev/zero", "bs=4k"]).arg(format!("of={}", filler.display())).output();
        let said = text(&output.expect("dd runs"));
        assert!(said.contains("No space left"), "{said}");
    }

    fn make_room(&self) {
        success(self.command("rm").arg(self.folder.path().join("filler")));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.command("cat").arg(self.state().join("windlass.log")).output();
            eprintln!("--- the cluster's log ---\n{}", log.map(|output| text(&output)).unwrap_or_default());
        }
        self.windlass().arg("down").output().ok();
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}

fn create(disk: &SmallDisk, name: &str) -> Result<(), String> {
    let value = format!("--from-literal=text={}", "x".repeat(100_000));
    let output = disk.kubectl().args(["create", "configmap", name, &value]).output().expect("kubectl runs");
    if output.status.success() { Ok(()) } else { Err(text(&output)) }
}

#[test]
fn a_disk_that_fills_refuses_writes_and_loses_nothing() {
    let disk = SmallDisk::new("12m");
    success(disk.windlass().args(["up", "--detach", "--profile", "bare"]));
    create(&disk, "before").expect("there is room");
    disk.fill();

    let mut stored = vec!["before".to_owned()];
    let said = (0..200)
        .find_map(|number| {
            let name = format!("more-{number}");
            match create(&disk, &name) {
                Ok(()) => {
                    stored.push(name);
                    None
                }
                Err(said) => Some(said),
            }
        })
        .expect("the disk is full at last");
    assert!(said.contains("disk") && said.contains("space"), "not clear: {said}");
    for name in &stored {
        success(disk.kubectl().args(["get", "configmap", name]));
    }

    disk.make_room();
    eventually("writes to go on once there is room", || create(&disk, "after"));
    stored.push("after".to_owned());

    let status = success(disk.windlass().arg("status"));
    let pid = status.split("process ").nth(1).and_then(|rest| rest.split(',').next()).expect("a process in the status");
    success(disk.command("kill").args(["-9", pid.trim()]));
    success(disk.windlass().args(["up", "--detach", "--profile", "bare"]));
    for name in &stored {
        success(disk.kubectl().args(["get", "configmap", name]));
    }
}

#[test]
fn a_disk_without_room_for_a_cluster_says_so() {
    let disk = SmallDisk::new("1m");
    disk.fill();
    let said = failure(disk.windlass().args(["up", "--detach", "--profile", "bare"]));
    assert!(said.contains("space"), "{said}");
}

/// A folder that its owner may read and not write; a folder's own permissions return when it is deleted.
fn sealed(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    seal(&folder, 0o500);
    folder
}

fn seal(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the owner may change permissions");
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    let cluster = TestCluster::ordinary();
    let folder = sealed(cluster.dir.path(), "sealed");
    let mut command = cluster.program();
    let said = failure(command.arg("--dir").arg(folder.join("state")).args(["up", "--detach", "--profile", "bare"]));
    assert!(said.contains("sealed") && said.contains("ermission"), "{said}");
    seal(&folder, 0o700);
}

#[test]
fn a_store_and_a_file_that_may_not_be_read_are_named_and_stay_as_they_are() {
    let cluster = TestCluster::ordinary();
    cluster.start(&["--profile", "bare"]);
    cluster.kubectl(&["create", "configmap", "kept"]);
    success(cluster.windlass().arg("down"));

    let store = std::fs::read_dir(cluster.state()).expect("the state is a folder").flatten();
    let store = store.map(|entry| entry.path()).find(|path| path.ends_with("store.log"));
    let store = store.expect("the store is a file of the state");
    seal(&store, 0o000);
    let said = failure(cluster.windlass().args(["up", "--detach", "--profile", "bare"]));
    assert!(said.contains("ermission") && said.contains(&*store.to_string_lossy()), "{said}");
    seal(&store, 0o600);

    let file = cluster.dir.path().join("secret.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n").expect("the folder can be written");
    seal(&file, 0o000);
    let said = failure(cluster.windlass().args(["up", "--detach", "--profile", "bare", "-f"]).arg(&file));
    assert!(said.contains("ermission") && said.contains("secret.yaml"), "{said}");

    cluster.start(&["--profile", "bare"]);
    assert!(cluster.object("configmap", "kept").is_some(), "what was stored is gone");
}

#[test]
fn an_image_store_that_may_not_be_written_is_said_on_the_pod() {
    let cluster = TestCluster::ordinary();
    let cache = sealed(cluster.dir.path(), "cache");
    success(cluster.windlass().env("XDG_CACHE_HOME", &cache).args(["up", "--detach"]));
    cluster.kubectl(&["run", "stuck", "--image=memcached:1.6", "--restart=Never"]);
    eventually("a waiting reason that names the folder", || {
        let pod = cluster.object("pod", "stuck").ok_or("no Pod")?;
        let message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"].to_string();
        if message.contains("ermission") && message.contains(&*cache.to_string_lossy()) {
            Ok(())
        } else {
            Err(pod["status"].to_string())
        }
    });
    seal(&cache, 0o700);
}
