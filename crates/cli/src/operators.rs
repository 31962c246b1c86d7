//! The operators that ship with Windlass: this one program carries them, and each runs as a process of its own.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use windlass::{ManifestOptions, Program};

use crate::manifest::Manifest;

/// The word that turns this program into one of its operators.
const COMMAND: &str = "operator";
/// Where operators run.
pub(crate) const NAMESPACE: &str = "windlass-system";

/// Every operator that ships with Windlass.
pub(crate) fn shipped() -> Vec<Box<dyn Program>> {
    vec![Box::new(memcached_operator::app()), Box::new(postgres_operator::app())]
}

/// Runs `windlass operator NAME …` as that operator.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()?.to_str() != Some(COMMAND) {
        return None;
    }
    let name = words.next().unwrap_or_default();
    let Some(operator) = shipped().into_iter().find(|operator| name.to_str() == Some(operator.name())) else {
        let names: Vec<String> = shipped().iter().map(|operator| operator.name().to_owned()).collect();
        eprintln!("error: no operator {name:?}; this program carries: {}", names.join(", "));
        return Some(ExitCode::from(2));
    };
    let arguments = std::iter::once(name).chain(words).collect();
    Some(operator.run_blocking(arguments))
}

/// What installs every shipped operator: its kinds, account, rights and Deployment.
pub(crate) fn manifests(program: &Path) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    for operator in shipped() {
        let command = [program.to_string_lossy().as_ref(), COMMAND, operator.name()].map(str::to_owned).to_vec();
        let options = ManifestOptions {
            namespace: NAMESPACE.to_owned(),
            image: "host".to_owned(),
            command,
            // On a machine of one's own there is nobody to keep out, and nobody to share with.
            extras: Default::default(),
            ..ManifestOptions::of(&*operator)
        };
        let objects: Vec<Value> = operator.manifests(&options);
        let origin = format!("operator {}", operator.name());
        manifests.extend(objects.into_iter().map(|object| Manifest { object, origin: origin.clone() }));
    }
    manifests
}
