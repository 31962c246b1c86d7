//! The groups in the order in which clients prefer them.

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
    let mut groups: Vec<Group<'_>> = Vec::new();
    let builtin = catalog.kinds().filter(|kind| kind.custom().is_none());
    builtin.for_each(|kind| add(&mut groups, kind));
    let known = groups.len();
    catalog.kinds().filter(|kind| kind.custom().is_some()).for_each(|kind| add(&mut groups, kind));
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

fn add<'a>(groups: &mut Vec<Group<'a>>, kind: &'a Served) {
    let position = groups.iter().position(|group| group.name == kind.group);
    let position = position.unwrap_or_else(|| {
        groups.push(Group { name: &kind.group, versions: Vec::new() });
        groups.len() - 1
    });
    let versions = &mut groups[position].versions;
    match versions.iter_mut().find(|version| version.version == kind.version) {
        Some(version) => version.kinds.push(kind),
        None => versions.push(GroupVersion { version: &kind.version, kinds: vec![kind] }),
    }
}
