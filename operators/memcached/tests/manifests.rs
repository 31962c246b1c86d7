//! What `crd`, `rbac` and `manifests` print, compared with what was agreed. `UPDATE_SNAPSHOTS=1` agrees anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

fn check(args: &[&str], snapshot: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let actual = String::from_utf8(output.stdout).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(snapshot);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(actual, expected, "{} differs", path.display());
}

#[test]
fn the_definition_is_as_agreed() {
    check(&["crd"], "crd.yaml");
}

#[test]
fn the_permissions_are_as_agreed() {
    check(&["rbac", "--watch-namespace", "caches"], "rbac.yaml");
}

#[test]
fn the_manifests_are_as_agreed() {
    check(&["manifests", "--image", "registry.example.com/memcached-operator:1.0"], "manifests.yaml");
}

#[test]
fn what_an_operator_outside_of_the_cluster_needs_is_as_agreed() {
    check(&["manifests", "--local"], "local.yaml");
}

#[test]
fn a_wrong_command_says_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator")).arg("fly").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("unrecognized subcommand 'fly'"), "{said}");
}
