//! The memcached operator as users install it: an image, and its manifests through kubectl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::super::kubectl::Kubectl;
use super::super::programs;
use crate::test::cargo;
use crate::workspace::{run, target};

pub(super) const NAME: &str = "memcached-operator";
pub(super) const NAMESPACE: &str = "memcached-system";
/// A user that is not root, and the program alone.
const DOCKERFILE: &str = "FROM debian\nCOPY memcached-operator /usr/bin/memcached-operator\nUSER 65532:65532\n\
                          ENTRYPOINT [\"/usr/bin/memcached-operator\"]\n";

/// The operator's program, in images of two versions.
pub(super) struct Installation {
    program: PathBuf,
}

impl Installation {
    /// Builds the program and its images.
    pub(super) fn build(windlass: &Path) -> Result<Self> {
        run(cargo().args(["build", "--quiet", "--package", NAME]))?;
        let program = target().join("debug").join(NAME);
        let folder = programs::place().join("image");
        fs::create_dir_all(&folder)?;
        fs::copy(&program, folder.join(NAME)).context("cannot copy the operator")?;
        for version in [1, 2] {
            fs::write(folder.join("Dockerfile"), format!("{DOCKERFILE}ENV OPERATOR_VERSION={version}\n"))?;
            let mut build = Command::new(windlass);
            build.args(["image", "build", &image(version)]).arg(&folder).stdout(Stdio::null());
            run(&mut build)?;
        }
        Ok(Self { program })
    }

    /// Applies the manifests of a version, and waits until only its replicas are left.
    pub(super) fn apply(&self, kubectl: &Kubectl, version: u32) -> Result<()> {
        let manifests = Command::new(&self.program)
            .args(["manifests", "--replicas", "2", "--image", &image(version)])
            .output()
            .context("cannot run the operator")?;
        if !manifests.status.success() {
            bail!("no manifests: {}", String::from_utf8_lossy(&manifests.stderr));
        }
        kubectl.apply(&String::from_utf8(manifests.stdout)?)?;
        let namespace = kubectl.get(&["namespace", NAMESPACE])?;
        let level = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
        ensure!(level == "restricted", "the level of {NAMESPACE} is {level}");
        let definition = "crd/memcacheds.cache.example.com";
        kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", definition])?;
        self.wait(kubectl)
    }

    /// Waits until both replicas are ready, and no other is left.
    pub(super) fn wait(&self, kubectl: &Kubectl) -> Result<()> {
        let deployment = format!("deployment/{NAME}");
        kubectl.run(&["--namespace", NAMESPACE, "rollout", "status", "--timeout=180s", &deployment])?;
        let is_two = |list: &serde_json::Value| list["items"].as_array().is_some_and(|pods| pods.len() == 2);
        kubectl.get_until(&["--namespace", NAMESPACE, "pods"], "two replicas", is_two).map(drop)
    }
}

fn image(version: u32) -> String {
    format!("{NAME}:{version}")
}
