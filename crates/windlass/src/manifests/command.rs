//! The commands `rbac` and `manifests`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::output::{self, File, OutputError};
use super::{Extra, ManifestOptions, helm, kustomize, needs, permissions, roles, visiting, yaml};
use crate::app::Program;
use crate::rbac::{Comparison, Need, Recording, RecordingError};

/// Options of all commands that print manifests.
#[derive(Args)]
pub(crate) struct InstallArgs {
    /// The namespace of the operator itself
    #[arg(long, short = 'n')]
    namespace: Option<String>,
    /// The image to run
    #[arg(long)]
    image: Option<String>,
    /// Serves the resources of these namespaces only, with roles in these alone
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    watch_namespace: Vec<String>,
    /// How many replicas run: one works, the others stand by
    #[arg(long, default_value_t = 2)]
    replicas: u32,
    /// Replicas share the work, which is divided into this many parts
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=256))]
    shards: Option<u32>,
    /// Labels for every object
    #[arg(long, value_name = "LABEL=VALUE,…", value_delimiter = ',', value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Leaves these out
    #[arg(long, value_name = "PART,…", value_enum, value_delimiter = ',')]
    without: Vec<Extra>,
}

/// Options of `rbac`.
#[derive(Args)]
pub(crate) struct RbacArgs {
    #[command(flatten)]
    install: InstallArgs,
    /// Adds what tests recorded that the operator did: a file, a folder, or where tests put it if none is named
    #[arg(long, value_name = "PATH")]
    recorded: Option<Option<PathBuf>>,
    /// Prints only in what the declared role and the recorded calls differ; fails if something is missing
    #[arg(long, requires = "recorded")]
    diff: bool,
}

/// Options of `manifests`.
#[derive(Args)]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    install: InstallArgs,
    /// In which form
    #[arg(long, value_enum, default_value_t = Format::Yaml)]
    format: Format,
    /// The folder to write to; the others than yaml need one
    #[arg(long, short = 'o', value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// The version of a chart; the operator's if it is not said
    #[arg(long)]
    version: Option<String>,
    /// For an operator that runs outside of the cluster (`run --webhooks=local`): definitions, an account and its
    /// permissions, no Deployment
    #[arg(long, conflicts_with_all = ["format", "output"])]
    local: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// All objects, in the order in which to apply them
    Yaml,
    /// A base and an example of an overlay
    Kustomize,
    /// A chart
    Helm,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("say with -o in which folder to write a {0}")]
    NoFolder(&'static str),
    #[error("say with --version which version the chart has, such as 1.0.0: the operator has none")]
    NoVersion,
    #[error("{0:?} is not a version such as 1.0.0")]
    BadVersion(String),
    #[error("the declared role lacks {0} rights that the recorded calls took: declare the kinds, or add App::allow")]
    Missing(usize),
}

impl InstallArgs {
    pub(crate) fn options(&self, program: &dyn Program) -> ManifestOptions {
        let mut options = ManifestOptions::of(program);
        options.watch_namespaces = self.watch_namespace.iter().filter(|name| !name.is_empty()).cloned().collect();
        options.replicas = self.replicas;
        options.shards = self.shards;
        options.labels = self.labels.iter().cloned().collect::<BTreeMap<_, _>>();
        let without: BTreeSet<Extra> = self.without.iter().copied().collect();
        options.extras = options.extras.difference(&without).copied().collect();
        if let Some(namespace) = &self.namespace {
            options.namespace = namespace.clone();
        }
        if let Some(image) = &self.image {
            options.image = image.clone();
        }
        options
    }
}

/// `rbac`.
pub(crate) fn rbac(program: &dyn Program, args: &RbacArgs) -> Result<(), ManifestError> {
    let options = args.install.options(program);
    let Some(path) = &args.recorded else {
        warn_of_secrets(&needs(program, &options), &options);
        return print(&permissions(program, &options));
    };
    let path = path.clone().unwrap_or_else(Recording::directory);
    let recordings = Recording::read(&path, program.name())?;
    let comparison = Comparison::with(program, &options, &recordings);
    if !args.diff {
        let mut needs = needs(program, &options);
        needs.extend(comparison.needs());
        warn_of_secrets(&needs, &options);
        return print(&roles(program.name(), &options, &needs));
    }
    print!("{comparison}");
    match comparison.missing.len() {
        0 => Ok(()),
        count => Err(ManifestError::Missing(count)),
    }
}

/// `manifests`.
pub(crate) fn manifests(program: &dyn Program, args: &ManifestsArgs) -> Result<(), ManifestError> {
    let options = args.install.options(program);
    warn_of_secrets(&needs(program, &options), &options);
    if args.local {
        return print(&visiting(program, &options));
    }
    let folder = |what| args.output.as_deref().ok_or(ManifestError::NoFolder(what));
    match args.format {
        Format::Yaml => match &args.output {
            None => print(&program.manifests(&options)),
            Some(folder) => {
                let text = yaml(&program.manifests(&options))?;
                let file = File::new(format!("{}.yaml", program.name()), text);
                Ok(output::write(folder, "", "", &[file])?)
            }
        },
        Format::Kustomize => {
            let files = kustomize::files(program, &options)?;
            Ok(output::write(folder("kustomization")?, kustomize::BASE, kustomize::MARK, &files)?)
        }
        Format::Helm => chart(program, &options, args.version.as_deref(), folder("chart")?),
    }
}

fn chart(
    program: &dyn Program,
    options: &ManifestOptions,
    version: Option<&str>,
    folder: &Path,
) -> Result<(), ManifestError> {
    let version = version.or(program.version()).ok_or(ManifestError::NoVersion)?;
    if !crate::bundle::is_version(version) {
        return Err(ManifestError::BadVersion(version.to_owned()));
    }
    Ok(output::write(folder, helm::TEMPLATES, helm::MARK, &helm::files(program, options, version))?)
}

fn print(objects: &[Value]) -> Result<(), ManifestError> {
    print!("{}", yaml(objects)?);
    Ok(())
}

/// Says so when the operator may read the Secrets of the whole cluster.
fn warn_of_secrets(needs: &[Need], options: &ManifestOptions) {
    let is_wide = |need: &Need| {
        let is_secret = need.right.group.is_empty() && need.right.resource == "secrets" && need.names.is_empty();
        is_secret && need.scope == crate::rbac::Scope::Served && options.watch_namespaces.is_empty()
    };
    if needs.iter().any(is_wide) {
        eprintln!(
            "note: the operator declares Secrets, so it may see those of all namespaces; --watch-namespace narrows that"
        );
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (label, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not label=value"))?;
    Ok((label.to_owned(), value.to_owned()))
}
