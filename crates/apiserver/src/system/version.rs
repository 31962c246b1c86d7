//! The version of the API that is served.

use serde_json::{Value, json};

/// The Kubernetes release whose API is served.
const MAJOR: &str = "1";
const MINOR: &str = "36";
/// The release that is served, as `/version` says it.
pub const RELEASE: &str = "v1.36.3+windlass";

/// The document at `/version`.
pub(super) fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "35",
        "gitVersion": RELEASE,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture by the name that Go gives it, which clients compare.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
