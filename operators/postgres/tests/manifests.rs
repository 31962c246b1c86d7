//! What `crd` and `rbac` print, compared with what was agreed: `postgres-operator crd > tests/snapshots/crd.yaml` agrees anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

fn run(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_postgres-operator")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_definition_is_as_agreed() {
    assert_eq!(run(&["crd"]), include_str!("snapshots/crd.yaml"));
}

#[test]
fn the_permissions_are_as_agreed() {
    assert_eq!(run(&["rbac", "--watch-namespace", "shop"]), include_str!("snapshots/rbac.yaml"));
}

#[test]
fn the_bundle_says_what_the_operator_is_able_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bundle.tar");
    run(&["bundle", "-o", path.to_str().unwrap()]);
    let capability = windlass::bundle::Bundle::read(&path).unwrap().description.capability;
    for deed in ["backs up PostgresCluster when asked", "restores PostgresCluster from a backup"] {
        assert!(capability.does.iter().any(|it| it == deed), "{capability:?}");
    }
    // Backups make no level by themselves: what comes before them has to be there, too.
    let upgrades = capability.does.iter().any(|it| it.starts_with("upgrades PostgresCluster"));
    assert_eq!(capability.level, if upgrades { 3 } else { 1 }, "{capability:?}");
}

#[test]
fn the_operator_knows_the_image_that_its_members_get_their_supervisor_from() {
    let image = "registry.example.com/postgres-operator:1.0";
    let manifests = run(&["manifests", "--image", image]);
    let lines: Vec<&str> = manifests.lines().map(str::trim).collect();
    let place = lines.iter().position(|line| line.ends_with("name: WINDLASS_OPERATOR_IMAGE")).unwrap();
    assert_eq!(lines[place + 1], format!("value: {image}"));
    assert!(run(&["--help"]).contains("instance"), "the supervisor is a command of the operator");
}
