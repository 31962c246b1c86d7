//! `plan` on the operator's own command line.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;
use windlass_runtime::Namespaces;

use super::{Plan, PlanError, Wish, plan};
use crate::app::Program;
use crate::connect::{ConnectError, Connection};

/// The largest file that is read.
const FILE_MAX: u64 = 16 << 20;

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Objects as they are to be; `-` is the standard input. Without files: what the operator would do now
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The objects of the files are to be deleted
    #[arg(long, requires = "files")]
    delete: bool,
    /// Where the objects are that name no namespace
    #[arg(long, short = 'n')]
    namespace: Option<String>,
    /// Looks at the resources of these namespaces only
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    watch_namespace: Vec<String>,
    /// In whose name the objects are applied
    #[arg(long, default_value = "kubectl", value_name = "NAME")]
    field_manager: String,
    /// How to print the plan
    #[arg(long, short = 'o', value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path} is no YAML: {source}")]
    Yaml { path: String, source: Box<serde_saphyr::Error> },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Makes the plan and prints it.
pub(crate) async fn run(program: &dyn Program, connection: &Connection, args: &PlanArgs) -> Result<(), CommandError> {
    let mut objects = Vec::new();
    for file in &args.files {
        objects.extend(read(file)?);
    }
    let (apply, delete) = if args.delete { (Vec::new(), objects) } else { (objects, Vec::new()) };
    let wish = Wish { apply, delete, field_manager: args.field_manager.clone(), namespace: args.namespace.clone() };
    let namespaces = match args.watch_namespace.is_empty() {
        true => Namespaces::all(),
        false => Namespaces::only(args.watch_namespace.clone()),
    };
    let plan = plan(program, connection.client().await?, namespaces, &wish).await?;
    print(&plan, args.output);
    Ok(())
}

fn print(plan: &Plan, output: Output) {
    match output {
        Output::Text => print!("{plan}"),
        Output::Json => println!("{:#}", serde_json::json!(plan)),
    }
}

fn read(path: &Path) -> Result<Vec<Value>, CommandError> {
    let name = || path.display().to_string();
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(FILE_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text))
    };
    read.map_err(|source| CommandError::Read { path: name(), source })?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|source| CommandError::Yaml { path: name(), source: Box::new(source) })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
