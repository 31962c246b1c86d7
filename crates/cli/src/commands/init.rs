//! `windlass init`: a new project of operators.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;

use crate::failure::Failure;
use crate::scaffold::name::{ProjectName, parse_domain};
use crate::scaffold::project::cargo;
use crate::scaffold::source::Source;
use crate::scaffold::{format_all, project_files, write_new};
use crate::view::output::say;

/// Options of `init`.
#[derive(Args)]
pub(crate) struct InitOptions {
    /// The name of the project, its program and its account, such as shop.
    name: String,
    /// The domain that the groups of its kinds end with, such as example.com.
    #[arg(long)]
    domain: String,
    /// Where to make it [default: a folder of its name here].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The source of Windlass to build with: its folder, the URL of a repository, or git [default: the folder that this
    /// program was built from, if it is there, else git].
    #[arg(long, value_name = "PATH|git")]
    windlass: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &InitOptions) -> Result<(), Failure> {
    let name = ProjectName::parse(&options.name)?;
    let domain = parse_domain(&options.domain)?;
    let source = Source::choose(options.windlass.as_deref())?;
    let root = options.dir.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
    if root.exists() && !root.is_dir() {
        return Err(Failure::new(format!("{}: is not a folder", root.display())).advice("name another with --dir"));
    }
    let files = format_all(&root, project_files(&name, &domain, &source));
    write_new(&root, &files).map_err(|failure| failure.context(root.display()))?;
    settle_lock(&root);
    say!("made the project {} in {}", name.as_str(), root.display());
    if let Some(workspace) = workspace_above(&root) {
        say!("note: it is inside of a workspace: add it to `members` in {}", workspace.display());
    }
    say!("\nNext:\n  cd {}", root.display());
    say!(
        "  windlass create api --group web --version v1 --kind Site   # a kind of web.{domain}, with a sample and tests"
    );
    say!("  cargo test                                                 # on clusters inside the tests");
    say!(
        "  windlass dev                                               # a cluster and the operators, rebuilt as you edit"
    );
    Ok(())
}

/// Cargo takes a package for a part of the workspace that it is in.
fn workspace_above(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let manifests = root.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    let is_workspace = |manifest: &PathBuf| {
        let text = std::fs::read_to_string(manifest).unwrap_or_default();
        text.lines().any(|line| line.trim_start().starts_with("[workspace"))
    };
    manifests.into_iter().find(is_workspace)
}

/// The lock came with more packages than the project needs: Cargo removes them. Without Cargo the first build does.
fn settle_lock(root: &Path) {
    let mut command = cargo();
    command.args(["update", "--workspace", "--offline", "--quiet"]).current_dir(root);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
