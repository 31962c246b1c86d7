//! What a new project is delivered with, done as it says: its workflow for CI, and its Dockerfile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::page::Reader;
use crate::support::{TestCluster, eventually, success};

/// The step that gets a toolchain. It is compared and not run: it would change the default of this machine.
const TOOLCHAIN: &str = "rustup toolchain install ";
const IMAGE: &str = "windlass-test-shop:1.0";

/// Runs the commands of the workflow, in their order.
pub(crate) fn the_workflow_passes(reader: &Reader) {
    let text = fs::read_to_string(reader.project().join(".github/workflows/ci.yml")).expect("there is a workflow");
    let workflow: Value = serde_saphyr::from_str(&text).expect("a workflow is YAML");
    let steps = workflow["jobs"]["test"]["steps"].as_array().expect("it has a job with steps");
    let commands: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let (first, others) = commands.split_first().expect("a step runs something");
    let toolchain = first.strip_prefix(TOOLCHAIN).and_then(|rest| rest.split(' ').next());
    assert_eq!(toolchain, Some(env!("CARGO_PKG_RUST_VERSION")), "{first}");
    for tool in ["clippy", "rustfmt"] {
        assert!(first.contains(tool), "a later step needs {tool}: {first}");
    }
    assert!(others.iter().any(|command| command.starts_with("cargo test")), "{commands:?}");
    for command in others {
        success(&mut reader.command(command));
    }
}

/// Does what the Dockerfile says: its first stage on this machine, where the crates are built already, and its second with
/// `windlass image build`. The image then runs as the user that it names.
pub(crate) fn the_dockerfile_makes_an_image_that_runs(reader: &Reader) {
    let dockerfile = fs::read_to_string(reader.project().join("Dockerfile")).expect("there is a Dockerfile");
    let second = dockerfile.rfind("\nFROM ").expect("it has two stages") + 1;
    let (build, run) = dockerfile.split_at(second);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = build_stage(reader, build, folder.path());

    let cluster = TestCluster::new();
    // Images of its own: what stands in for the base of the second stage is nobody else's.
    let windlass = |words: &[&str]| {
        let mut command = cluster.windlass();
        command.env("XDG_CACHE_HOME", folder.path().join("cache")).args(words);
        command
    };
    let base = run.lines().next().and_then(|line| line.strip_prefix("FROM ")).expect("a stage begins with FROM");
    let files = folder.path().join("base");
    c_library(&program, &files);
    success(windlass(&["image", "add", base]).arg(&files));
    success(windlass(&["image", "build", IMAGE]).arg(context(&program, run, folder.path())));

    success(&mut windlass(&["up", "--detach", "--no-operators"]));
    let security = r#"{"spec": {"securityContext": {"runAsNonRoot": true}}}"#;
    let image = format!("--image={IMAGE}");
    let pod = ["run", "shop", &image, "--image-pull-policy=Never", "--restart=Never", "--overrides", security];
    cluster.kubectl(&[&pod[..], &["--", "crd"]].concat());
    let printed = eventually("the program to have ended", || {
        let pod = cluster.object("pod", "shop").unwrap_or_default();
        let log = || cluster.kubectl(&["logs", "shop"]);
        if pod["status"]["phase"] == "Succeeded" { Ok(log()) } else { Err(pod["status"].to_string()) }
    });
    assert!(printed.contains("name: sites.web.example.com"), "{printed}");
}

/// Copies what the stage copies, does what it runs, and gives the program. Without optimisation: that is no part of what
/// the Dockerfile can have wrong, and would build every crate once more.
fn build_stage(reader: &Reader, stage: &str, folder: &Path) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).expect("the folder can be written");
    let mut ran = 0;
    for line in stage.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("COPY", words)) if words.starts_with("--from=windlass ") => {
                let path = words.rsplit(' ').next().expect("a COPY says where to");
                let manifest = fs::read_to_string(reader.project().join("Cargo.toml")).expect("there is a manifest");
                assert!(manifest.contains(&format!("\"{path}/crates/windlass\"")), "{path} is not in {manifest}");
            }
            Some(("COPY", words)) => {
                let words: Vec<&str> = words.split_whitespace().collect();
                let (to, from) = words.split_last().expect("a COPY says where to");
                let mut copy = Command::new("cp");
                copy.arg("-r").args(from.iter().map(|file| reader.project().join(file))).arg(source.join(to));
                success(&mut copy);
            }
            Some(("RUN", command)) => {
                let command = command.replace(" --release", "");
                success(reader.command(&command).current_dir(&source));
                ran += 1;
            }
            _ => {}
        }
    }
    assert_eq!(ran, 1, "the stage builds the program:\n{stage}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    target.join("debug/shop")
}

/// The folder of the second stage: what it copies from the first is there.
fn context(program: &Path, stage: &str, folder: &Path) -> PathBuf {
    let context = folder.join("context");
    fs::create_dir(&context).expect("the folder can be written");
    fs::copy(program, context.join("shop")).expect("the program was built");
    let first = "FROM scratch AS build\nCOPY shop /source/target/release/shop\n";
    fs::write(context.join("Dockerfile"), format!("{first}{stage}")).expect("the folder can be written");
    context
}

/// What the base of the second stage has: the C library, and nothing else.
fn c_library(program: &Path, files: &Path) {
    fs::create_dir(files).expect("the folder can be written");
    let needs = success(Command::new("ldd").arg(program));
    let libraries: Vec<&str> = needs.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(!libraries.is_empty(), "{needs}");
    success(Command::new("cp").args(["--parents", "--dereference"]).args(libraries).arg(files));
}
