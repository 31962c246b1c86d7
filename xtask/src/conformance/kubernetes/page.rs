//! The page of results, docs/conformance.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::Result;

use super::report::{Outcome, Spec};
use super::selection::{Need, Selection};
use crate::tools::KUBERNETES;
use crate::workspace::root;

/// Where the results are, below the root.
const FILE: &str = "docs/conformance.md";

/// Which tests a run is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those that need no node.
    NoNode,
    /// Those and the ones for which a pretended node is enough.
    All,
    /// Those whose Pods are run.
    Node,
}

/// A part of the page, from one run.
struct Part {
    need: Need,
    title: &'static str,
    /// How its tests were run.
    made: &'static str,
}

const PARTS: [Part; 3] = [
    Part {
        need: Need::Nothing,
        title: "Tests that need no node",
        made: "`cargo xtask conformance kubernetes`, profile `workloads`",
    },
    Part {
        need: Need::FakeNode,
        title: "Tests for which a pretended node is enough",
        made: "`cargo xtask conformance kubernetes --all`, profile `workloads`",
    },
    Part {
        need: Need::Node,
        title: "Tests whose Pods are run",
        made: "`cargo xtask conformance kubernetes --node`, profile `node`",
    },
];

impl Scope {
    fn has(self, need: Need) -> bool {
        match need {
            Need::Nothing => self != Self::Node,
            Need::FakeNode => self == Self::All,
            Need::Node => self == Self::Node,
            Need::More => false,
        }
    }
}

/// Writes the page after a run of everything that was chosen; parts of other runs stay.
pub(super) fn write(selection: &Selection, specs: &[Spec], outcomes: &[Outcome], scope: Scope) -> Result<()> {
    let path = root().join(FILE);
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, page(selection, specs, outcomes, (scope, &before)))?;
    Ok(())
}

fn page(selection: &Selection, specs: &[Spec], outcomes: &[Outcome], (scope, before): (Scope, &str)) -> String {
    let count = |need| specs.iter().filter(|spec| selection.need(&spec.name) == need).count();
    let mut text = format!(
        "# Kubernetes conformance\n\n\
         Made by the commands below, not by hand: Kubernetes {KUBERNETES}'s own end-to-end program, unchanged, against Windlass\n\
         {}. What fails once may have run again with `--failed`.\n\n\
         Of the {} conformance tests of that release, {} need an API server and controllers only, {} more a node that says\n\
         that Pods run, {} a node that runs them (images of Debian packages, and of programs built from their Go modules), and\n\
         {} something that our node does not have; those last are not run, and listed at the end.\n",
        env!("CARGO_PKG_VERSION"),
        specs.len(),
        count(Need::Nothing),
        count(Need::FakeNode),
        count(Need::Node),
        count(Need::More),
    );
    for part in &PARTS {
        if scope.has(part.need) {
            let of_need: Vec<&Outcome> =
                outcomes.iter().filter(|outcome| selection.need(&outcome.name) == part.need).collect();
            section(&mut text, part, &of_need);
        } else if let Some(old) = kept(before, part.title) {
            text.push_str(&old);
        }
    }
    text.push_str("\n## Tests that are not run\n");
    for (reason, names) in selection.missing() {
        writeln!(text, "- {reason}:").expect("a string takes all");
        names.iter().for_each(|name| writeln!(text, "  - {}", plain(name)).expect("a string takes all"));
    }
    text
}

/// The section of this title on a page, with the empty line before it.
fn kept(page: &str, title: &str) -> Option<String> {
    let start = page.find(&format!("\n## {title}\n"))?;
    let length = page[start + 1..].find("\n## ").map_or(page.len() - start, |length| length + 1);
    Some(page[start..start + length].to_owned())
}

fn section(text: &mut String, part: &Part, outcomes: &[&Outcome]) {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for outcome in outcomes {
        let (passed, failed) = groups.entry(group(&outcome.name)).or_default();
        *(if outcome.failure.is_none() { passed } else { failed }) += 1;
    }
    let total = |which: fn(&(usize, usize)) -> usize| groups.values().map(which).sum::<usize>();
    let Part { title, made, .. } = part;
    write!(text, "\n## {title}\n{made}\n\n| | passed | failed |\n| --- | --- | --- |\n").expect("a string takes all");
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
        let part = Part { need: Need::Nothing, title: "Title", made: "by hand" };
        section(&mut text, &part, &outcomes.iter().collect::<Vec<_>>());
        assert_eq!(
            text,
            "\n## Title\nby hand\n\n| | passed | failed |\n| --- | --- | --- |\n| sig-apps | 1 | 1 |\n| sig-cli | 1 | 0 |\n\
             | **all** | **2** | **1** |\n\nFailing, with the first line of the failure:\n\
             - \\[sig-apps] Two \\[Serial]: `no 'x'`\n"
        );
    }

    #[test]
    fn sections_of_other_runs_are_found() {
        let page = "# Page\n\nText.\n\n## One\na\n\n## Two\nb\n";
        assert_eq!(kept(page, "One").as_deref(), Some("\n## One\na\n"));
        assert_eq!(kept(page, "Two").as_deref(), Some("\n## Two\nb\n"));
        assert_eq!(kept(page, "Three"), None);
    }
}
