//! `windlass create api`: one more kind in a project.

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::scaffold::api::ApiName;
use crate::scaffold::name::parse_group;
use crate::scaffold::project::Project;
use crate::scaffold::{ByHand, Extras, api_files, format_all, wire, write_new};
use crate::view::output::say;

/// What can be created.
#[derive(Subcommand)]
pub(crate) enum CreateCommand {
    /// Add a kind to the project of this folder: its module, a sample, and tests that pass.
    #[command(disable_version_flag = true)]
    Api(ApiOptions),
}

/// Options of `create api`.
#[derive(Args)]
pub(crate) struct ApiOptions {
    /// Its group: a word, which the domain of the project completes, or a whole name with dots.
    #[arg(long)]
    group: String,
    /// Its version, such as v1 or v1alpha1.
    #[arg(long)]
    version: String,
    /// Its name, such as Site.
    #[arg(long)]
    kind: String,
    /// With a function that refuses bad resources before they are stored.
    #[arg(long)]
    webhook: bool,
    /// With an older version and the conversion between the two.
    #[arg(long)]
    conversion: bool,
}

/// Runs the command.
pub(crate) fn run(command: &CreateCommand) -> Result<(), Failure> {
    let CreateCommand::Api(options) = command;
    let project = Project::find(&std::env::current_dir()?)?;
    let group = parse_group(&options.group, &project.domain)?;
    let name = ApiName::new(group, &options.version, &options.kind)?;
    let extras = Extras { webhook: options.webhook, conversion: options.conversion };
    let files = format_all(&project.root, api_files(&name, &project.crate_name(), extras)?);
    write_new(&project.root, &files)?;
    for file in &files {
        say!("made {}", file.path);
    }
    add_to_program(&project, &name.module())?;
    say!("added {} to src/lib.rs", name.kind);
    say!("\nNext: `cargo test`, then `windlass dev`. The rules of {} are in src/{}.rs.", name.kind, name.module());
    Ok(())
}

/// Changes the one file that is there already, last: whatever was in the way before, it is as it was.
fn add_to_program(project: &Project, module: &str) -> Result<(), Failure> {
    let path = project.root.join("src/lib.rs");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let wired = wire(&text, module).map_err(ByHand::into_failure)?;
    std::fs::write(&path, wired).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
