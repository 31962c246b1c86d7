//! Which conformance test needs what. A test that no list names needs nothing, so a new one is run until it is known better.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use super::report::Spec;
use crate::workspace::root;

/// What a test needs beside the API and the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// A node that says that its Pods run.
    FakeNode,
    /// A node that runs them.
    Node,
    /// Something that our node does not have.
    More,
}

/// The lists of `tools/e2e`.
pub(super) struct Selection {
    fake_node: BTreeSet<String>,
    node: BTreeSet<String>,
    /// What they need, by their names.
    more: BTreeMap<String, String>,
}

impl Selection {
    /// Reads the lists.
    pub(super) fn read() -> Result<Self> {
        Ok(Self {
            fake_node: read("needs-fake-node.txt")?.lines().map(str::to_owned).collect(),
            node: read("needs-node.txt")?.lines().map(str::to_owned).collect(),
            more: reasons(&read("needs-more.txt")?)?,
        })
    }

    /// What the test of this name needs.
    pub(super) fn need(&self, name: &str) -> Need {
        if self.more.contains_key(name) {
            Need::More
        } else if self.node.contains(name) {
            Need::Node
        } else if self.fake_node.contains(name) {
            Need::FakeNode
        } else {
            Need::Nothing
        }
    }

    /// The tests that need what our node does not have, by what that is.
    pub(super) fn missing(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, reason) in &self.more {
            missing.entry(reason).or_default().push(name);
        }
        missing
    }

    /// Refuses lists that name tests which this release does not have, or a test twice.
    pub(super) fn check(&self, specs: &[Spec]) -> Result<()> {
        let known: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let listed = || self.fake_node.iter().chain(&self.node).chain(self.more.keys());
        let unknown: Vec<&str> = listed().map(String::as_str).filter(|name| !known.contains(name)).collect();
        if !unknown.is_empty() {
            bail!("remove from tools/e2e/needs-*.txt what this release does not have: {}", unknown.join("; "));
        }
        let mut once = BTreeSet::new();
        if let Some(twice) = listed().find(|name| !once.insert(*name)) {
            bail!("two of the lists tools/e2e/needs-*.txt name {twice:?}; keep one");
        }
        Ok(())
    }
}

fn read(file: &str) -> Result<String> {
    let path = root().join("tools/e2e").join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Names below lines that begin with `# ` and say why.
fn reasons(text: &str) -> Result<BTreeMap<String, String>> {
    let (mut reason, mut found) = (None, BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("# "), reason) {
            (Some(next), _) => reason = Some(next),
            (None, Some(reason)) => drop(found.insert(line.to_owned(), str::to_owned(reason))),
            (None, None) => {
                bail!("tools/e2e/needs-more.txt does not say why {line:?} is in it: begin with a line `# …`")
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(fake_node: &[&str], node: &[&str], more: &[&str]) -> Selection {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let more = more.iter().map(|name| ((*name).to_owned(), "it".to_owned())).collect();
        Selection { fake_node: set(fake_node), node: set(node), more }
    }

    fn specs(names: &[&str]) -> Vec<Spec> {
        names.iter().map(|name| Spec { name: (*name).to_owned(), serial: false }).collect()
    }

    #[test]
    fn a_test_that_no_list_names_needs_nothing() {
        let selection = selection(&["fake"], &["real"], &["two"]);
        assert_eq!(selection.need("new"), Need::Nothing);
        assert_eq!(selection.need("fake"), Need::FakeNode);
        assert_eq!(selection.need("real"), Need::Node);
        assert_eq!(selection.need("two"), Need::More);
    }

    #[test]
    fn stale_and_double_names_are_refused() {
        assert!(selection(&["a"], &[], &["b"]).check(&specs(&["a", "b", "c"])).is_ok());
        assert!(selection(&["gone"], &[], &[]).check(&specs(&["a"])).is_err());
        assert!(selection(&["a"], &["a"], &[]).check(&specs(&["a"])).is_err());
    }

    #[test]
    fn reasons_stand_above_names() {
        let found = reasons("# two nodes\na\nb\n\n# UDP\nc\n").expect("reasons");
        let found: Vec<_> = found.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
        assert_eq!(found, [("a", "two nodes"), ("b", "two nodes"), ("c", "UDP")]);
        assert!(reasons("a\n").is_err());
    }

    #[test]
    fn the_lists_of_this_release_are_read() {
        let selection = Selection::read().expect("the lists are checked in");
        assert!(selection.fake_node.len() > 50 && selection.node.len() > 100);
    }
}
