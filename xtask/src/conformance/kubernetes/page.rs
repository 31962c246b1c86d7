//! The page of results, docs/conformance.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::Result;

use super::report::{Outcome, Spec};
use super::selection::{Need, Selection};
use crate::tools::KUBERNETES;
use crate::workspace::root;

/// Which tests a page is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those that need no node.
    NoNode,
    /// Those and the ones for which a pretended node is enough.
    All,
    /// Those whose Pods run the tests' own image.
    Node,
}

impl Scope {
    fn command(self) -> &'static str {
        match self {
            Self::NoNode => "cargo xtask conformance kubernetes",
            Self::All => "cargo xtask conformance kubernetes --all",
            Self::Node => "cargo xtask conformance kubernetes --node",
        }
    }

    fn sections(self) -> &'static [(&'static str, Need)] {
        const NONE: (&str, Need) = ("Tests that need no node", Need::Nothing);
        const FAKE: (&str, Need) = ("Tests for which a pretended node is enough", Need::FakeNode);
        match self {
            Self::NoNode => &[NONE],
            Self::All => &[NONE, FAKE],
            Self::Node => &[("Tests whose Pods run the program agnhost", Need::Agnhost)],
        }
    }
}

/// Writes the page for a run of everything that was chosen.
pub(super) fn write(selection: &Selection, specs: &[Spec], outcomes: &[Outcome], scope: Scope) -> Result<()> {
    let file = if scope == Scope::Node { "docs/conformance-node.md" } else { "docs/conformance.md" };
    fs::write(root().join(file), page(selection, specs, outcomes, scope))?;
    Ok(())
}

fn page(selection: &Selection, specs: &[Spec], outcomes: &[Outcome], scope: Scope) -> String {
    let count = |need| specs.iter().filter(|spec| selection.need(&spec.name) == need).count();
    let mut text = format!(
        "# Kubernetes conformance{}\n\n\
         Made by `{}`, not by hand: Kubernetes {KUBERNETES}'s own end-to-end program, unchanged, against Windlass {}\n\
         with profile `{}`. What fails once may have run again with `--failed`.\n\n\
         Of the {} conformance tests of that release, {} need an API server and controllers only, {} more a node that says\n\
         that Pods run, {} a node that runs agnhost, the tests' own program (built from its Go module; run by `--node`), and {}\n\
         a node that does more or runs other images; those last are not run here.\n",
        if scope == Scope::Node { " with a node" } else { "" },
        scope.command(),
        env!("CARGO_PKG_VERSION"),
        if scope == Scope::Node { "node" } else { "workloads" },
        specs.len(),
        count(Need::Nothing),
        count(Need::FakeNode),
        count(Need::Agnhost),
        count(Need::Node),
    );
    for (title, need) in scope.sections() {
        let of_need: Vec<&Outcome> = outcomes.iter().filter(|outcome| selection.need(&outcome.name) == *need).collect();
        section(&mut text, title, &of_need);
    }
    text
}

fn section(text: &mut String, title: &str, outcomes: &[&Outcome]) {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for outcome in outcomes {
        let (passed, failed) = groups.entry(group(&outcome.name)).or_default();
        *(if outcome.failure.is_none() { passed } else { failed }) += 1;
    }
    let total = |which: fn(&(usize, usize)) -> usize| groups.values().map(which).sum::<usize>();
    write!(text, "\n## {title}\n| | passed | failed |\n| --- | --- | --- |\n").expect("a string takes all");
    for (name, (passed, failed)) in &groups {
        writeln!(text, "| {name} | {passed} | {failed} |").expect("a string takes all");
    }
    let (passed, failed) = (total(|group| group.0), total(|group| group.1));
    writeln!(text, "| **all** | **{passed}** | **{failed}** |").expect("a string takes all");
    let failures = outcomes.iter().filter_map(|outcome| Some((&outcome.name, outcome.failure.as_ref()?)));
    for (at, (name, reason)) in failures.enumerate() {
        if at == 0 {
            text.push_str("\nFailing, with the first line of the failure:\n");
        }
        writeln!(text, "- {}: `{}`", plain(name), reason.replace('`', "'")).expect("a string takes all");
    }
}

/// The group that a test belongs to: `sig-apps` of `[sig-apps] Deployment …`.
fn group(name: &str) -> &str {
    name.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or("other")
}

/// The name without what all have, and without what Markdown would take for markup.
fn plain(name: &str) -> String {
    let name = name.strip_suffix(" [Conformance]").unwrap_or(name);
    name.replace('[', "\\[").replace('*', "\\*").replace('<', "\\<")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_section_counts_by_group_and_names_failures() {
        let outcome = |name: &str, failure: Option<&str>| Outcome {
            name: name.to_owned(),
            failure: failure.map(str::to_owned),
            time: Duration::ZERO,
        };
        let outcomes = [
            outcome("[sig-apps] One [Conformance]", None),
            outcome("[sig-apps] Two [Serial] [Conformance]", Some("no `x`")),
            outcome("[sig-cli] Three [Conformance]", None),
        ];
        let mut text = String::new();
        section(&mut text, "Title", &outcomes.iter().collect::<Vec<_>>());
        assert_eq!(
            text,
            "\n## Title\n| | passed | failed |\n| --- | --- | --- |\n| sig-apps | 1 | 1 |\n| sig-cli | 1 | 0 |\n\
             | **all** | **2** | **1** |\n\nFailing, with the first line of the failure:\n\
             - \\[sig-apps] Two \\[Serial]: `no 'x'`\n"
        );
    }
}
