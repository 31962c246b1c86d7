//! This program under the names of the control plane's programs, as the envtest suites of Go projects start them.

mod api_server;
mod etcd;
mod flags;
mod kubectl;
mod orphan;
mod settings;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use flags::Flags;

/// The names, in the order in which they are put in a folder.
pub(crate) const NAMES: [&str; 3] = ["kube-apiserver", "etcd", "kubectl"];

/// Runs as the program whose name this process was started by; `None` if that is none of [`NAMES`].
pub(crate) fn run_if_called() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    if name == "kubectl" {
        return Some(kubectl::run());
    }
    if !NAMES.contains(&name) {
        return None;
    }
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let outcome = match (name, Flags::parse(words)) {
        ("etcd", Ok(flags)) => etcd::run(&flags),
        (_, Ok(flags)) => api_server::run(&flags),
        (_, Err(failure)) => Err(failure),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    })
}
