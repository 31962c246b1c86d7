//! Where the script is played: a new cluster, and the operator beside it with the rights of its own account.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::build::Program;
use super::kubectl::Kubectl;
use crate::cluster::Cluster;

/// The operator's account, in all implementations.
const ACCOUNT: (&str, &str) = ("memcached-system", "memcached-operator");
/// How long an operator may take to end when it is told to.
const END_MAX: Duration = Duration::from_secs(30);

/// A cluster with an operator.
pub(super) struct Stage {
    pub(super) kubectl: Kubectl,
    program: Program,
    kubeconfig: PathBuf,
    log: PathBuf,
    operator: Option<Child>,
    _cluster: Cluster,
}

impl Stage {
    /// Starts a cluster below `place`, installs what the operator needs, and starts it.
    pub(super) fn set(place: &Path, windlass: &Path, kubectl: &Path, program: Program) -> Result<Self> {
        fs::create_dir_all(place)?;
        let cluster = Cluster::start(place, windlass.to_owned())?;
        let admin = Kubectl::new(kubectl, cluster.kubeconfig());
        for manifest in &program.manifests {
            admin.run(&["apply", "-f", &manifest.display().to_string()])?;
        }
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd/memcacheds.cache.example.com"])?;
        let kubeconfig = place.join("operator.kubeconfig");
        restrict(&admin, &cluster.kubeconfig(), &kubeconfig)?;
        let log = place.join("operator.log");
        File::create(&log)?;
        let mut stage = Self { kubectl: admin, program, kubeconfig, log, operator: None, _cluster: cluster };
        stage.start()?;
        Ok(stage)
    }

    /// The ClusterRole of the operator.
    pub(super) fn role(&self) -> &'static str {
        self.program.role
    }

    /// Starts the operator.
    pub(super) fn start(&mut self) -> Result<()> {
        let log = File::options().append(true).open(&self.log)?;
        let (program, words) = self.program.command.split_first().context("a command has a name")?;
        let child = Command::new(program)
            .args(words)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        self.operator = Some(child);
        Ok(())
    }

    /// Tells the operator to end, and waits for that.
    pub(super) fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.operator.take() else { return Ok(()) };
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        let begin = Instant::now();
        while child.try_wait()?.is_none() {
            if begin.elapsed() > END_MAX {
                child.kill()?;
                child.wait()?;
                bail!("it did not end within {} s of being told to", END_MAX.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether the operator has ended by itself.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        match &mut self.operator {
            Some(child) => Ok(child.try_wait()?.is_some()),
            None => Ok(true),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop().ok();
    }
}

/// Writes a kubeconfig with a token of the operator's account instead of the administrator's certificate.
fn restrict(admin: &Kubectl, from: &Path, to: &Path) -> Result<()> {
    let (namespace, account) = ACCOUNT;
    let token = admin.run(&["create", "token", account, "--namespace", namespace, "--duration=2h"])?;
    let text = admin.run(&["config", "view", "--raw", "--minify", "-o", "json"])?;
    let mut config: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no kubeconfig", from.display()))?;
    config["users"][0]["user"] = serde_json::json!({"token": token.trim()});
    fs::write(to, config.to_string())?;
    Ok(())
}
