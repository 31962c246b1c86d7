//! `windlass plan`: what the operators would do.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use windlass::Program;
use windlass::plan::{Wish, plan};
use windlass::runtime::Namespaces;

use crate::arguments::Target;
use crate::connection::connect;
use crate::failure::Failure;
use crate::manifest;
use crate::operators;
use crate::view::output::{say, show};

/// Whoever applies a file with this program or with kubectl on the server's side.
const FIELD_MANAGER: &str = "kubectl";

/// Options of `plan`.
#[derive(Args)]
pub(crate) struct PlanOptions {
    /// Files, folders or - with the objects as they are to be; without them: what the operators would do now.
    #[arg(short, long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The objects are to be deleted.
    #[arg(long, requires = "files")]
    delete: bool,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value = "text")]
    output: PlanOutput,
}

/// How a plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanOutput {
    /// For people.
    Text,
    /// For programs: one document for each operator.
    Json,
}

/// Runs the command.
pub(crate) async fn run(options: &PlanOptions, target: &Target) -> Result<(), Failure> {
    let objects: Vec<Value> = manifest::read(&options.files)?.into_iter().map(|manifest| manifest.object).collect();
    let concerned = concerned(&objects)?;
    let connection = connect(target).await?;
    let (apply, delete) = if options.delete { (Vec::new(), objects) } else { (objects, Vec::new()) };
    let namespace = Some(connection.namespace.clone());
    let wish = Wish { apply, delete, field_manager: FIELD_MANAGER.to_owned(), namespace };
    for operator in concerned {
        let plan = plan(&*operator, connection.client.clone(), Namespaces::all(), &wish).await;
        let plan = plan.map_err(|error| Failure::new(error.to_string()))?;
        match options.output {
            PlanOutput::Text => show!("{}:\n\n{plan}", operator.name()),
            PlanOutput::Json => say!("{:#}", json!({"operator": operator.name(), "plan": plan})),
        }
    }
    Ok(())
}

/// The operators whose kinds are among the objects; all of them where there are none.
fn concerned(objects: &[Value]) -> Result<Vec<Box<dyn Program>>, Failure> {
    let mut shipped = operators::shipped();
    if objects.is_empty() {
        return Ok(shipped);
    }
    shipped.retain(|operator| {
        let kinds = operator.crds().into_iter().map(|definition| (definition.spec.group, definition.spec.names.kind));
        kinds.into_iter().any(|(group, kind)| {
            let is_kind = |object: &Value| {
                object["kind"] == kind.as_str()
                    && object["apiVersion"].as_str().is_some_and(|version| version.split('/').next() == Some(&group))
            };
            objects.iter().any(is_kind)
        })
    });
    if shipped.is_empty() {
        return Err(Failure::new("no operator that ships with windlass is concerned with these objects")
            .advice("ask the operator itself: `<operator> plan -f FILE`"));
    }
    Ok(shipped)
}
