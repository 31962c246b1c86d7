//! Who owns whom: every object of the cluster that owns or is owned, by UID.

use std::collections::{HashMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// The UID of an object.
pub(crate) type Uid = String;

/// The finalizer of an object that waits for its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are to be set free.
pub(crate) const ORPHAN: &str = "orphan";

/// Where an object is served: the key of its kind, its namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// `apiVersion` without the version, and the kind: versions of one kind are one kind.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) deletion: Deletion,
}

/// How far the deletion of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    None,
    /// Some finalizer of somebody else holds it.
    Pending,
    /// It waits for its dependents to go.
    WaitsForDependents,
    /// Its dependents are to lose their reference first.
    Orphans,
}

impl Deletion {
    /// Reads the state from the metadata.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let has = |finalizer: &str| meta.finalizers.iter().flatten().any(|known| known == finalizer);
        match meta.deletion_timestamp {
            None => Self::None,
            Some(_) if has(ORPHAN) => Self::Orphans,
            Some(_) if has(FOREGROUND) => Self::WaitsForDependents,
            Some(_) => Self::Pending,
        }
    }
}

/// The graph. Edges are kept by the owner's UID even while the owner has not been seen: order of arrival is no matter.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Uid, Node>,
    dependents: HashMap<Uid, HashSet<Uid>>,
}

impl Graph {
    /// Takes in the state of an object and returns whom to look at.
    pub(crate) fn observe(&mut self, uid: &str, node: Node) -> Vec<Uid> {
        let before = self.nodes.insert(uid.to_owned(), node.clone());
        let owners_before = before.as_ref().map(|node| node.owners.as_slice()).unwrap_or_default();
        let mut look = vec![];
        for owner in owners_before {
            if !node.owners.iter().any(|now| now.uid == owner.uid) {
                self.unlink(&owner.uid, uid, &mut look);
            }
        }
        let mut changed = before.is_none() && !node.owners.is_empty() && !self.owners_are_sound(&node);
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.to_owned());
            changed |= before.is_some() && !owners_before.contains(owner);
        }
        // An owner in the foreground waits for blocking dependents: a reference that no longer blocks frees it.
        let differs = |owner: &&OwnerReference| {
            node.owners.iter().any(|now| now.uid == owner.uid) && !node.owners.contains(owner)
        };
        for owner in owners_before.iter().filter(differs).filter(|owner| self.is_waiting(&owner.uid)) {
            look.push(owner.uid.clone());
        }
        if changed {
            look.push(uid.to_owned());
        }
        let deletion_before = before.map_or(Deletion::None, |node| node.deletion);
        if node.deletion != deletion_before {
            look.extend(self.after_deletion_change(uid, node.deletion));
        }
        look
    }

    /// Takes in that an object is gone and returns whom to look at.
    pub(crate) fn forget(&mut self, uid: &str) -> Vec<Uid> {
        let mut look: Vec<Uid> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        if let Some(node) = self.nodes.remove(uid) {
            for owner in node.owners {
                self.unlink(&owner.uid, uid, &mut look);
            }
        }
        look
    }

    /// The node with that UID.
    pub(crate) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The dependents of an object, with their nodes.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = (&Uid, &Node)> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|uid| self.nodes.get_key_value(uid))
    }

    /// Dependents that the deletion of their owner has to wait for.
    pub(crate) fn blocking<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = (&'a Uid, &'a Node)> {
        let blocks =
            move |reference: &OwnerReference| reference.uid == owner && reference.block_owner_deletion == Some(true);
        self.dependents(owner).filter(move |(_, node)| node.owners.iter().any(blocks))
    }

    /// Whether an owner with that UID is there and is what the reference of `dependent` says.
    pub(crate) fn knows(&self, reference: &OwnerReference, dependent: &Place) -> bool {
        self.nodes.get(&reference.uid).is_some_and(|owner| {
            let same_scope = owner.place.namespace.is_none() || owner.place.namespace == dependent.namespace;
            same_scope && owner.place.kind == reference.kind && owner.place.name == reference.name
        })
    }

    fn owners_are_sound(&self, node: &Node) -> bool {
        let settled = |uid: &str| self.nodes.get(uid).is_some_and(|owner| owner.deletion == Deletion::None);
        node.owners.iter().all(|owner| self.knows(owner, &node.place) && settled(&owner.uid))
    }

    fn is_waiting(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|node| node.deletion == Deletion::WaitsForDependents)
    }

    fn unlink(&mut self, owner: &str, dependent: &str, look: &mut Vec<Uid>) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
        if self.is_waiting(owner) {
            look.push(owner.to_owned());
        }
    }

    fn after_deletion_change(&self, uid: &str, deletion: Deletion) -> Vec<Uid> {
        match deletion {
            Deletion::None | Deletion::Pending => vec![],
            Deletion::Orphans => vec![uid.to_owned()],
            Deletion::WaitsForDependents => {
                let dependents = self.dependents.get(uid).into_iter().flatten().cloned();
                dependents.chain([uid.to_owned()]).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, owners: &[&str], deletion: Deletion) -> Node {
        let owner = |name: &&str| OwnerReference {
            uid: (*name).to_owned(),
            name: (*name).to_owned(),
            kind: "K".to_owned(),
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        };
        let place =
            Place { group: String::new(), kind: "K".into(), namespace: Some("ns".into()), name: name.to_owned() };
        Node { place, owners: owners.iter().map(owner).collect(), deletion }
    }

    fn see(graph: &mut Graph, name: &str, owners: &[&str], deletion: Deletion) -> Vec<Uid> {
        let mut look = graph.observe(name, node(name, owners, deletion));
        look.sort();
        look
    }

    #[test]
    fn only_what_may_be_garbage_is_looked_at() {
        let mut graph = Graph::default();
        assert_eq!(see(&mut graph, "owner", &[], Deletion::None), Vec::<Uid>::new());
        assert_eq!(see(&mut graph, "child", &["owner"], Deletion::None), Vec::<Uid>::new());
        assert_eq!(see(&mut graph, "lost", &["nobody"], Deletion::None), ["lost"]);
        assert_eq!(graph.forget("owner"), ["child"]);
    }

    #[test]
    fn edges_do_not_depend_on_the_order_of_arrival() {
        let mut graph = Graph::default();
        assert_eq!(see(&mut graph, "child", &["owner"], Deletion::None), ["child"]);
        see(&mut graph, "owner", &[], Deletion::None);
        assert_eq!(graph.dependents("owner").map(|(uid, _)| uid.as_str()).collect::<Vec<_>>(), ["child"]);
        assert_eq!(graph.forget("owner"), ["child"]);
    }

    #[test]
    fn an_owner_in_the_foreground_is_looked_at_when_a_dependent_leaves() {
        let mut graph = Graph::default();
        see(&mut graph, "owner", &[], Deletion::None);
        see(&mut graph, "child", &["owner"], Deletion::None);
        assert_eq!(see(&mut graph, "owner", &[], Deletion::WaitsForDependents), ["child", "owner"]);
        assert_eq!(graph.blocking("owner").count(), 1);
        assert_eq!(graph.forget("child"), ["owner"]);
        assert_eq!(graph.blocking("owner").count(), 0);
    }

    #[test]
    fn a_reference_that_is_taken_away_frees_a_waiting_owner() {
        let mut graph = Graph::default();
        see(&mut graph, "owner", &[], Deletion::WaitsForDependents);
        assert_eq!(see(&mut graph, "child", &["owner"], Deletion::None), ["child"]);
        assert_eq!(see(&mut graph, "child", &[], Deletion::None), ["owner"]);
    }
}
