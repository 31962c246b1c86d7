//! The program: `run` runs the operators; `crd`, `rbac`, `manifests` and `plan` print.

use std::process::ExitCode;

fn main() -> ExitCode {
    {{crate}}::program().main()
}
