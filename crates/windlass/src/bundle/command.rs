//! The command `bundle`.

use std::cmp::Ordering;
use std::path::PathBuf;

use clap::Args;

use super::version::{compare, is_range, is_version};
use super::{Bundle, BundleError, Standing, Upgrades};
use crate::app::Program;
use crate::capability::Capability;
use crate::manifests::OutputError;
use crate::manifests::command::InstallArgs;

/// Options of `bundle`.
#[derive(Args)]
pub(crate) struct BundleArgs {
    #[command(flatten)]
    install: InstallArgs,
    /// Where to write it: a folder, or a file that ends in .tar
    #[arg(long, short = 'o', value_name = "PATH")]
    output: PathBuf,
    /// The version; the operator's if it is not said
    #[arg(long)]
    version: Option<String>,
    /// The version that this one takes over from
    #[arg(long, value_name = "VERSION")]
    replaces: Option<String>,
    /// Versions that need not be installed on the way to this one
    #[arg(long, value_name = "VERSION,…", value_delimiter = ',')]
    skips: Vec<String>,
    /// The same as a range, such as ">=1.0.0 <1.2.0"
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,
    /// The channels that it is in; the first is the default
    #[arg(long, value_name = "CHANNEL,…", value_delimiter = ',', default_value = "stable")]
    channels: Vec<String>,
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("say with --version which version it is, such as 1.0.0: the operator has none")]
    NoVersion,
    #[error("{0:?} is not a version such as 1.0.0")]
    BadVersion(String),
    #[error("{0:?} is not a range of versions such as \">=1.0.0 <1.2.0\"")]
    BadRange(String),
    #[error("{version} cannot take over from {other}, which is not older")]
    NotOlder { version: String, other: String },
    #[error("{0:?} is not a name for a channel: use small letters, digits, dots and dashes")]
    BadChannel(String),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// `bundle`.
pub(crate) fn run(program: &dyn Program, args: &BundleArgs) -> Result<(), CommandError> {
    let standing = standing(args.version.as_deref().or(program.version()), args)?;
    let bundle = Bundle::of(program, &args.install.options(program), standing)?;
    bundle.write(&args.output)?;
    // What cannot be read again must not be handed on.
    let digest = Bundle::read(&args.output)?.digest();
    if let Some(why) = &bundle.description.not_registry {
        eprintln!("note: it is not a registry+v1 bundle: {why}");
    }
    print_capability(&bundle.description.capability);
    println!("{} {} {digest}", bundle.description.name, bundle.description.version);
    Ok(())
}

/// Why the bundle has the level that it has.
fn print_capability(capability: &Capability) {
    eprintln!("capability level {}, {}, because it", capability.level, capability.name);
    for deed in &capability.does {
        eprintln!("  {deed}");
    }
    if !capability.lacks.is_empty() {
        eprintln!("for the next level it lacks {}", capability.lacks);
    }
}

fn standing(version: Option<&str>, args: &BundleArgs) -> Result<Standing, CommandError> {
    let version = version.ok_or(CommandError::NoVersion)?.to_owned();
    if !is_version(&version) {
        return Err(CommandError::BadVersion(version));
    }
    for other in args.replaces.iter().chain(&args.skips) {
        match compare(other, &version) {
            None => return Err(CommandError::BadVersion(other.clone())),
            Some(Ordering::Less) => {}
            Some(_) => return Err(CommandError::NotOlder { version, other: other.clone() }),
        }
    }
    if let Some(range) = args.skip_range.iter().find(|range| !is_range(range)) {
        return Err(CommandError::BadRange(range.clone()));
    }
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '.' || it == '-';
    let is_bad = |channel: &&String| channel.is_empty() || !channel.chars().all(is_plain);
    if let Some(channel) = args.channels.iter().find(is_bad) {
        return Err(CommandError::BadChannel(channel.clone()));
    }
    let upgrades =
        Upgrades { replaces: args.replaces.clone(), skips: args.skips.clone(), skip_range: args.skip_range.clone() };
    Ok(Standing { version, upgrades, channels: args.channels.clone() })
}
