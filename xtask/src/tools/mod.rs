//! Programs that tests and comparisons need and that we did not write: Debian packages, and Kubernetes, etcd and others built
//! from their Go modules.

mod debian;
mod go;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::workspace::{cache, on_path, run as run_command};
use go::Package;
pub(crate) use go::go;

/// The pinned Kubernetes release; the `go.mod` files in `tools` name the modules of the same release.
pub(crate) const KUBERNETES: &str = "1.36.3";

/// The release of cargo-fuzz that builds the fuzz targets.
const CARGO_FUZZ: &str = "0.13.2";

/// Options of `tools`.
#[derive(Args)]
pub(crate) struct Options {
    /// The tools; what the tests need if none is named.
    #[arg(value_enum)]
    tools: Vec<Tool>,
}

/// A program that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    Kubectl,
    Helm,
    Versitygw,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Etcd,
    E2e,
    Agnhost,
    SampleApiserver,
}

/// Installs what the tests need and says where kubectl is.
pub(crate) fn install() -> Result<PathBuf> {
    debian::packages()?;
    // Found by the tests under their releases.
    helm()?;
    versitygw()?;
    kubectl()
}

/// The `tools` task.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.tools.is_empty() {
        println!("kubectl: {}", install()?.display());
    }
    for tool in &options.tools {
        let (name, path) = match tool {
            Tool::Kubectl => ("kubectl", kubectl()?),
            Tool::Helm => ("helm", helm()?),
            Tool::Versitygw => ("versitygw", versitygw()?),
            Tool::KubeApiserver => ("kube-apiserver", kube_apiserver()?),
            Tool::KubeControllerManager => ("kube-controller-manager", kube_controller_manager()?),
            Tool::KubeScheduler => ("kube-scheduler", kube_scheduler()?),
            Tool::Etcd => ("etcd", etcd()?),
            Tool::E2e => ("e2e", e2e()?),
            Tool::Agnhost => ("agnhost", agnhost()?),
            Tool::SampleApiserver => ("sample-apiserver", sample_apiserver()?),
        };
        println!("{name}: {}", path.display());
    }
    Ok(())
}

/// The etcd that the real API server keeps its objects in: the newest of the line that Kubernetes tests with. Debian's is
/// years older and lacks what watches of today's API server ask for.
pub(crate) const ETCD: &str = "3.6.16";

/// The helm that charts are checked with: the newest of the line that is built on the pinned Kubernetes, so that most of it
/// is built already.
pub(crate) const HELM: &str = "3.21.4";

/// helm, built once per machine.
pub(crate) fn helm() -> Result<PathBuf> {
    let package = Package::Program("helm.sh/helm/v3/cmd/helm");
    program("helm", HELM, "one or two minutes", |output| go::build("tools/helm", package, "-s -w", output))
}

/// The object storage that backups are tested with: a whole S3 server over a folder, which checks signatures and conditions.
pub(crate) const VERSITYGW: &str = "1.8.0";

/// versitygw, built once per machine.
pub(crate) fn versitygw() -> Result<PathBuf> {
    let package = Package::Program("github.com/versity/versitygw/cmd/versitygw");
    program("versitygw", VERSITYGW, "one or two minutes", |output| {
        go::build("tools/versitygw", package, "-s -w", output)
    })
}

/// kubectl of the pinned release, built once per machine.
pub(crate) fn kubectl() -> Result<PathBuf> {
    kubernetes_program("kubectl", "tools/kubectl", Package::Program("."), "two or three minutes")
}

/// The real API server of the pinned release, built once per machine: what Windlass is compared with.
pub(crate) fn kube_apiserver() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/kubernetes/cmd/kube-apiserver");
    kubernetes_program("kube-apiserver", "tools/kubernetes", package, "ten minutes")
}

/// The real controllers of the pinned release, built once per machine.
pub(crate) fn kube_controller_manager() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/kubernetes/cmd/kube-controller-manager");
    kubernetes_program("kube-controller-manager", "tools/kubernetes", package, "ten minutes")
}

/// The real scheduler of the pinned release, built once per machine.
pub(crate) fn kube_scheduler() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/kubernetes/cmd/kube-scheduler");
    kubernetes_program("kube-scheduler", "tools/kubernetes", package, "five minutes")
}

/// The end-to-end tests of the pinned release as one program, built once per machine.
pub(crate) fn e2e() -> Result<PathBuf> {
    kubernetes_program("e2e", "tools/e2e", Package::Tests("k8s.io/kubernetes/test/e2e"), "ten to twenty minutes")
}

/// A server that answers for a group of its own, built once per machine.
pub(crate) fn sample_apiserver() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/sample-apiserver");
    kubernetes_program("sample-apiserver", "tools/kubernetes", package, "five minutes")
}

/// The program that the Pods of the end-to-end tests run, built once per machine.
pub(crate) fn agnhost() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/kubernetes/test/images/agnhost");
    kubernetes_program("agnhost", "tools/kubernetes", package, "five minutes")
}

/// A program that says in whose name it runs, built once per machine.
pub(crate) fn nonewprivs() -> Result<PathBuf> {
    let package = Package::Program("k8s.io/kubernetes/test/images/nonewprivs");
    kubernetes_program("nonewprivs", "tools/kubernetes", package, "a second")
}

/// The source of the pinned release, as its module has it.
pub(crate) fn kubernetes_source() -> Result<PathBuf> {
    go::source("tools/kubernetes", "k8s.io/kubernetes")
}

/// etcd, built once per machine.
pub(crate) fn etcd() -> Result<PathBuf> {
    let package = Package::Program("go.etcd.io/etcd/server/v3");
    program("etcd", ETCD, "one minute", |output| go::build("tools/etcd", package, "-s -w", output))
}

/// cargo-fuzz, from crates.io, built once per machine.
pub(crate) fn cargo_fuzz() -> Result<PathBuf> {
    if !["c++", "g++", "clang++"].iter().any(|compiler| on_path(compiler)) {
        bail!("the fuzzer needs a C++ compiler; on Debian: apt-get install g++");
    }
    let folder = cache()?.join(format!("cargo-fuzz-{CARGO_FUZZ}"));
    let program = folder.join("bin/cargo-fuzz");
    if !program.is_file() {
        println!("tools: building cargo-fuzz {CARGO_FUZZ} (a minute, once)");
        let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        install.args(["install", "--quiet", "--locked", "--version", CARGO_FUZZ, "--root"]).arg(&folder);
        run_command(install.arg("cargo-fuzz"))?;
    }
    Ok(program)
}

/// A program of the pinned Kubernetes release, built from `package` by the module in `folder`.
fn kubernetes_program(name: &str, folder: &str, package: Package, duration: &str) -> Result<PathBuf> {
    let version = "k8s.io/component-base/version";
    let minor = KUBERNETES.split('.').nth(1).expect("a release has a minor");
    let stamp =
        format!("-s -w -X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor=1 -X {version}.gitMinor={minor}");
    program(name, KUBERNETES, duration, |output| go::build(folder, package, &stamp, output))
}

/// A program that `build` makes; kept between checkouts, under a name with its release.
fn program(name: &str, release: &str, duration: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let target = cache()?.join(format!("{name}-{release}"));
    if target.is_file() {
        return Ok(target);
    }
    println!("tools: building {name} {release} from its Go modules ({duration}, once)");
    fs::create_dir_all(cache()?)?;
    let partial = target.with_extension(format!("{}.partial", std::process::id()));
    build(&partial)?;
    fs::rename(&partial, &target)?;
    Ok(target)
}
