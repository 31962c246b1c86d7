//! Names that an author has to know: those of the toolkit and of the Kubernetes types that the code mentions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use super::count::{Language, code};
use crate::workspace::root;

/// What `use windlass::prelude::*` brings, of which only what is mentioned counts.
const PRELUDE: &str = "crates/windlass/src/prelude.rs";
/// Crates whose names are no part of the matter.
const OWN: [&str; 5] = ["std", "crate", "self", "super", "anyhow"];

/// The distinct names in all of `paths`.
pub(super) fn of(paths: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in paths {
        let lines = code(path)?;
        match Language::of(path) {
            Some(Language::Go) if path.extension().is_some_and(|extension| extension == "go") => go(&lines, &mut names),
            Some(Language::Python) => python(&lines, &mut names),
            Some(Language::Rust) => {
                let prelude = code(&root().join(PRELUDE))?.join("\n");
                rust(&lines.join("\n"), &prelude, &mut names);
            }
            _ => {}
        }
    }
    Ok(names)
}

/// `package.Name` for each imported package that is no part of Go or of the project itself, and the names of markers.
fn go(lines: &[String], names: &mut BTreeSet<String>) {
    let mut packages = BTreeSet::new();
    for line in lines {
        let Some((before, path)) = line.trim_end_matches('"').split_once('"') else { continue };
        let is_foreign =
            path.split('/').next().is_some_and(|host| host.contains('.')) && !path.starts_with("example.com/");
        if is_foreign && !line.contains([':', '=', '(']) {
            let alias = before.trim();
            packages.insert(if alias.is_empty() { last(path).to_owned() } else { alias.to_owned() });
        }
    }
    for line in lines {
        if let Some(marker) = line.strip_prefix("// +") {
            let end = marker.find(['=', ' ']).unwrap_or(marker.len());
            let end = marker.find(":rule").or_else(|| marker.find(":groups")).unwrap_or(end).min(end);
            names.insert(format!("+{}", &marker[..end]));
        }
        for (before, after) in qualified(line, '.') {
            if packages.contains(before) {
                names.insert(format!("{before}.{after}"));
            }
        }
    }
}

/// `kopf.name` and `kubernetes.….name`.
fn python(lines: &[String], names: &mut BTreeSet<String>) {
    for line in lines {
        for word in line.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '.') {
            if word.starts_with("kopf.") || word.starts_with("kubernetes.") {
                names.insert(word.trim_end_matches('.').to_owned());
            }
        }
    }
}

/// The last names of `use` lines, what is mentioned of a prelude, and the words in attributes of a derive.
fn rust(text: &str, prelude: &str, names: &mut BTreeSet<String>) {
    let words: BTreeSet<&str> = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    for statement in uses(text) {
        if statement.ends_with("prelude::*") {
            let known = uses(prelude).into_iter().flat_map(|known| leaves(&known)).chain(["named".to_owned()]);
            names.extend(known.filter(|name| words.contains(name.as_str())));
        } else if !OWN.contains(&statement.split("::").next().unwrap_or_default()) {
            names.extend(leaves(&statement));
        }
    }
    for attribute in text.split("#[").skip(1) {
        let name = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
        if ["resource", "schema", "kube", "x_kube", "schemars"].contains(&name) {
            names.extend(keys(attribute).into_iter().map(|key| format!("#[{name}({key})]")));
        }
    }
}

/// The trees after `use`.
fn uses(text: &str) -> Vec<String> {
    let text = text.replace("pub use ", "use ");
    let statements = text.split('\n').collect::<Vec<_>>().join(" ");
    let found = statements.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
    found.map(|(tree, _)| tree.split_whitespace().collect()).collect()
}

/// The last names of a tree.
fn leaves(tree: &str) -> Vec<String> {
    let parts = tree.split(['{', ',', '}']).filter(|part| !part.is_empty() && !part.ends_with("::"));
    let last = |part: &str| part.rsplit("::").next().unwrap_or_default().to_owned();
    parts.map(last).filter(|name| !["self", "*", "_"].contains(&name.as_str())).collect()
}

/// The words before `=` or `(` in an attribute, up to its end.
fn keys(attribute: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let inside = attribute.split_once('(').map_or("", |(_, rest)| rest.split(")]").next().unwrap_or(rest));
    // What stands between quotes is a value.
    for part in inside.split('"').step_by(2) {
        for (at, _) in part.match_indices(['=', '(']) {
            let word = part[..at].trim_end().rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            keys.extend(word.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    keys
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Pairs of words with `mark` between them.
fn qualified(line: &str, mark: char) -> Vec<(&str, &str)> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let pair = |(at, _): (usize, &str)| {
        let before = line[..at].rsplit(|letter| !is_word(letter)).next().filter(|word| !word.is_empty())?;
        let after = line[at + 1..].split(|letter| !is_word(letter)).next().filter(|word| !word.is_empty())?;
        Some((before, after))
    };
    line.match_indices(mark).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn names_are_found_in_each_language() {
        let mut found = BTreeSet::new();
        let text = [
            "import (",
            "\"context\"",
            "appsv1 \"k8s.io/api/apps/v1\"",
            "// +required",
            "x := appsv1.Deployment{A: context.TODO}",
        ];
        go(&text.map(str::to_owned), &mut found);
        assert_eq!(strings(&found), ["+required", "appsv1.Deployment"]);

        let mut found = BTreeSet::new();
        python(
            &["@kopf.on.event('', when=kopf.PRESENT)".to_owned(), "kubernetes.client.ApiClient()".to_owned()],
            &mut found,
        );
        assert_eq!(strings(&found), ["kopf.PRESENT", "kopf.on.event", "kubernetes.client.ApiClient"]);

        let mut found = BTreeSet::new();
        let text = "use std::fmt;\nuse kube::{Api, runtime::watcher};\nuse windlass::prelude::*;\n#[schema(min = 1, cel(\"a = b\"))]\nfn f() -> Desired {}";
        rust(text, "pub use windlass_core::{Desired, World};", &mut found);
        assert_eq!(strings(&found), ["#[schema(cel)]", "#[schema(min)]", "Api", "Desired", "watcher"]);
    }
}
