//! The groups in the order in which clients prefer them.

use std::collections::HashMap;

use crate::{
    crd::version,
    registry::{Catalog, Served},
};

/// A group with its versions, the preferred one first.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) name: &'a str,
    pub(crate) versions: Vec<GroupVersion<'a>>,
}

/// A version of a group with its kinds, by the name of the resource.
#[derive(Debug)]
pub(crate) struct GroupVersion<'a> {
    pub(crate) version: &'a str,
    pub(crate) kinds: Vec<&'a Served>,
}

impl GroupVersion<'_> {
    /// The version with its group: `apps/v1`, or `v1` in the core group.
    pub(crate) fn name(&self, group: &str) -> String {
        if group.is_empty() { self.version.to_owned() } else { format!("{group}/{}", self.version) }
    }
}

/// All groups: the core group first, built-in ones in upstream's order, then those of definitions by name.
pub(crate) fn groups(catalog: &Catalog) -> Vec<Group<'_>> {
    arranged(catalog.kinds())
}

/// One group; `None` if it has no kinds.
pub(crate) fn group<'a>(catalog: &'a Catalog, name: &str) -> Option<Group<'a>> {
    arranged(catalog.kinds().filter(|kind| kind.group == name)).pop()
}

fn arranged<'a>(kinds: impl Iterator<Item = &'a Served>) -> Vec<Group<'a>> {
    let (builtin, custom): (Vec<&Served>, Vec<&Served>) = kinds.partition(|kind| kind.custom().is_none());
    let mut arranged = Arranged::default();
    builtin.into_iter().for_each(|kind| arranged.add(kind));
    let known = arranged.groups.len();
    custom.into_iter().for_each(|kind| arranged.add(kind));
    let mut groups = arranged.groups;
    groups[known..].sort_by(|left, right| left.name.cmp(right.name));
    for (index, group) in groups.iter_mut().enumerate() {
        // The table has built-in versions in their order already.
        if index >= known {
            group.versions.sort_by(|left, right| version::compare(right.version, left.version));
        }
        for version in &mut group.versions {
            version.kinds.sort_by(|left, right| left.plural.cmp(&right.plural));
        }
    }
    groups
}

/// Groups in the order in which their first kinds came.
#[derive(Default)]
struct Arranged<'a> {
    groups: Vec<Group<'a>>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> Arranged<'a> {
    fn add(&mut self, kind: &'a Served) {
        let position = *self.positions.entry(&kind.group).or_insert_with(|| {
            self.groups.push(Group { name: &kind.group, versions: Vec::new() });
            self.groups.len() - 1
        });
        let versions = &mut self.groups[position].versions;
        match versions.iter_mut().find(|version| version.version == kind.version) {
            Some(version) => version.kinds.push(kind),
            None => versions.push(GroupVersion { version: &kind.version, kinds: vec![kind] }),
        }
    }
}
