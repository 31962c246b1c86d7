//! Checks that the compiler does not make: file lengths, module docs, the direction of crates, names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace::root;

/// A file longer than this is split by noun.
const LINES_MAX: usize = 400;
/// Files that are one long table, an entry per kind or per flag: each entry is read alone.
const TABLES: [&str; 0] = [];
/// Names that say nothing.
const EMPTY_NAMES: [&str; 5] = ["util", "utils", "helpers", "common", "misc"];
/// Pages with Rust that is not compiled with them, and where it is seen that it is right: in a test that compares it with code
/// that is run, or in the example above it on the page, which it repeats as a test of the reader's own.
const ILLUSTRATED: [&str; 3] = ["from-kube.md", "explore.md", "campaigns.md"];
/// Crates in their order: each may use only those before it.
const ORDER: [&str; 21] = [
    "windlass-kubernetes",
    "windlass-differential",
    "windlass-api",
    "windlass-clock",
    "windlass-store",
    "windlass-merge",
    "windlass-schema",
    "windlass-apiserver",
    "windlass-core",
    "windlass-derive",
    "windlass-runtime",
    "windlass",
    "windlass-controllers",
    "windlass-node",
    "windlass-cluster",
    "windlass-testkit",
    "memcached-operator",
    "postgres-operator",
    "windlass-load",
    "windlass-cli",
    "xtask",
];

/// The `tidy` task.
pub(crate) fn run() -> Result<()> {
    let mut complaints = Vec::new();
    for manifest in manifests(&root())? {
        check_direction(&manifest, &mut complaints)?;
    }
    for file in rust_files(&root())? {
        check_file(&file, &mut complaints)?;
    }
    check_book(&root(), &mut complaints)?;
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{} places are not tidy", complaints.len())
}

fn check_file(path: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let name = relative(path);
    let text = fs::read_to_string(path)?;
    if !text.starts_with("//!") && !text.starts_with("#![doc = include_str!") {
        complaints.push(format!("{name}: begin with a `//!` sentence that says what the module is"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !TABLES.contains(&name.as_str()) {
        complaints.push(format!("{name}: {lines} lines, at most {LINES_MAX}: split it by noun"));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if EMPTY_NAMES.contains(&stem.as_ref()) {
        complaints.push(format!("{name}: name the file for what it does"));
    }
    Ok(())
}

/// The examples of the book are compiled and run with the tests of a crate, which names the page.
fn check_book(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let mut code = String::new();
    for file in rust_files(root)? {
        code.push_str(&fs::read_to_string(file)?);
    }
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs"))?.flatten().map(|entry| entry.path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    for page in pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_included = code.contains(&format!("include_str!(\"../../../docs/{name}\")"));
        complaints.extend(untested(&name, &fs::read_to_string(&page)?, is_included));
    }
    Ok(())
}

/// What is wrong with the examples of a page, if anything is.
fn untested(name: &str, page: &str, is_included: bool) -> Option<String> {
    let mut fences = page.lines().filter_map(|line| line.strip_prefix("```rust"));
    let has_ignored = fences.clone().any(|options| options.contains("ignore"));
    match fences.next() {
        Some(_) if !is_included => {
            Some(format!("docs/{name}: no crate runs its examples: add it to the book of `windlass`"))
        }
        _ if has_ignored && !ILLUSTRATED.contains(&name) => {
            Some(format!("docs/{name}: `rust,ignore` is run by nobody: hide what it needs behind `# `"))
        }
        _ => None,
    }
}

fn check_direction(manifest: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(manifest)?;
    let Some(own) = package_name(&text) else { return Ok(()) };
    let Some(rank) = ORDER.iter().position(|name| *name == own) else {
        complaints.push(format!("{}: give the crate `{own}` its place in the order (xtask tidy)", relative(manifest)));
        return Ok(());
    };
    for dependency in dependencies(&text) {
        if ORDER.iter().position(|name| *name == dependency).is_some_and(|other| other >= rank) {
            complaints.push(format!("{}: `{own}` may not use `{dependency}`", relative(manifest)));
        }
    }
    Ok(())
}

fn package_name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    Some(line.trim_start_matches("name = ").trim_matches('"').to_owned())
}

/// The names under `[dependencies]`; what tests use may point anywhere.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
}

fn manifests(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.join("xtask/Cargo.toml")];
    for parent in ["crates", "operators"] {
        for entry in fs::read_dir(root.join(parent))? {
            found.push(entry?.path().join("Cargo.toml"));
        }
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pending = vec![root.join("crates"), root.join("operators"), root.join("xtask")];
    let mut found = Vec::new();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_that_nobody_runs_are_told() {
        assert_eq!(untested("a.md", "```sh\nls\n```\n", false), None);
        assert_eq!(untested("a.md", "```rust\nlet a;\n```\n", true), None);
        assert!(untested("a.md", "```rust\nlet a;\n```\n", false).is_some());
        assert!(untested("a.md", "```rust\n```\n```rust,ignore\n```\n", true).is_some());
        assert_eq!(untested("from-kube.md", "```rust,ignore\n```\n", true), None);
    }

    #[test]
    fn only_real_dependencies_count_for_the_direction() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nwindlass-core.workspace = true\nserde = \"1\"\n\n[dev-dependencies]\nwindlass-cluster.workspace = true\n";
        assert_eq!(package_name(manifest).as_deref(), Some("x"));
        assert_eq!(
            dependencies(manifest).iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(),
            ["windlass-core", "serde"]
        );
    }
}
