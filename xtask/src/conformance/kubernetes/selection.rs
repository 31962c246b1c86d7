//! Which conformance test needs what. A test that no list names needs nothing, so a new one is run until it is known better.

use std::collections::BTreeSet;
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
    /// A node that runs the program of the tests' own image.
    Agnhost,
    /// A node that runs other images.
    Node,
}

/// The lists of `tools/e2e`.
pub(super) struct Selection {
    fake_node: BTreeSet<String>,
    agnhost: BTreeSet<String>,
    node: BTreeSet<String>,
}

impl Selection {
    /// Reads the lists.
    pub(super) fn read() -> Result<Self> {
        Ok(Self {
            fake_node: names("needs-fake-node.txt")?,
            agnhost: names("needs-agnhost.txt")?,
            node: names("needs-node.txt")?,
        })
    }

    /// What the test of this name needs.
    pub(super) fn need(&self, name: &str) -> Need {
        if self.node.contains(name) {
            Need::Node
        } else if self.agnhost.contains(name) {
            Need::Agnhost
        } else if self.fake_node.contains(name) {
            Need::FakeNode
        } else {
            Need::Nothing
        }
    }

    /// Refuses lists that name tests which this release does not have, or a test twice.
    pub(super) fn check(&self, specs: &[Spec]) -> Result<()> {
        let known: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let listed = || self.fake_node.iter().chain(&self.agnhost).chain(&self.node);
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

fn names(file: &str) -> Result<BTreeSet<String>> {
    let path = root().join("tools/e2e").join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(fake_node: &[&str], agnhost: &[&str], node: &[&str]) -> Selection {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection { fake_node: set(fake_node), agnhost: set(agnhost), node: set(node) }
    }

    fn specs(names: &[&str]) -> Vec<Spec> {
        names.iter().map(|name| Spec { name: (*name).to_owned(), serial: false }).collect()
    }

    #[test]
    fn a_test_that_no_list_names_needs_nothing() {
        let selection = selection(&["fake"], &["own"], &["real"]);
        assert_eq!(selection.need("new"), Need::Nothing);
        assert_eq!(selection.need("fake"), Need::FakeNode);
        assert_eq!(selection.need("own"), Need::Agnhost);
        assert_eq!(selection.need("real"), Need::Node);
    }

    #[test]
    fn stale_and_double_names_are_refused() {
        assert!(selection(&["a"], &[], &["b"]).check(&specs(&["a", "b", "c"])).is_ok());
        assert!(selection(&["gone"], &[], &[]).check(&specs(&["a"])).is_err());
        assert!(selection(&["a"], &["a"], &[]).check(&specs(&["a"])).is_err());
    }

    #[test]
    fn the_lists_of_this_release_are_read() {
        let selection = Selection::read().expect("the lists are checked in");
        assert!(selection.fake_node.len() > 50 && selection.node.len() > 200);
    }
}
