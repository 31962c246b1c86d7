//! The role that an operator declares, held against what it was seen to do.

use std::collections::BTreeSet;
use std::fmt;

use windlass_runtime::tap::{Place, Right};

use super::grants::Grants;
use super::need::{Need, Part, Scope};
use super::recording::Recording;
use crate::app::Program;
use crate::manifests::{self, ManifestOptions};

/// Kinds that live in no namespace: a list of all of them looks like a list of all namespaces.
const CLUSTER_KINDS: [(&str, &str); 14] = [
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("networking.k8s.io", "ingressclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "storageclasses"),
];

/// In what the declared role and what was seen differ.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was done and is not allowed.
    pub missing: Vec<Missing>,
    /// What is allowed and was not done.
    pub unused: Vec<Need>,
    declared: BTreeSet<String>,
    namespace: String,
}

/// A right that the declared role does not grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The right.
    pub right: Right,
    /// Where it was used.
    pub places: BTreeSet<Place>,
    /// The tests that used it.
    pub tests: BTreeSet<String>,
}

impl Comparison {
    /// Holds the role that `program` declares against what was recorded.
    pub fn of(program: &dyn Program, recordings: &[Recording]) -> Self {
        Self::with(program, &ManifestOptions::of(program), recordings)
    }

    /// The same, with options such as the operator's own namespace. Which namespaces are served does not matter: it is the
    /// role for all of them that is looked at.
    pub fn with(program: &dyn Program, options: &ManifestOptions, recordings: &[Recording]) -> Self {
        let options = ManifestOptions { watch_namespaces: Vec::new(), ..options.clone() };
        let needs = manifests::needs(program, &options);
        let roles = manifests::roles(program.name(), &options, &needs);
        let grants = Grants::of(&roles, &options.namespace, program.name());
        let mut missing: Vec<Missing> = Vec::new();
        for recording in recordings {
            for (right, uses) in recording.rights.iter() {
                let refused = grants.refuse(right, uses);
                if !refused.is_empty() {
                    note(&mut missing, right, refused, &recording.test);
                }
            }
        }
        let declared = needs.iter().map(|need| need.right.to_string()).collect();
        let is_used = |need: &Need| recordings.iter().any(|recording| uses(recording, need));
        let unused = needs.into_iter().filter(|need| !is_used(need)).collect();
        Self { missing, unused, declared, namespace: options.namespace }
    }

    /// What was seen is allowed by the declared role.
    ///
    /// # Panics
    /// If it is not; the message names the rights and the tests.
    #[track_caller]
    pub fn assert_enough(&self) {
        assert!(self.missing.is_empty(), "the declared role is not enough:\n{self}");
    }

    /// The same without what is declared for other parts: a test of the work alone neither leads nor serves webhooks.
    #[must_use]
    pub fn of_part(mut self, part: Part) -> Self {
        self.unused.retain(|need| need.part == part);
        self
    }

    /// Every declared right was used, but for those that are `argued`, each as `delete deployments.apps`: what a test cannot
    /// or need not show.
    ///
    /// # Panics
    /// If another right was not used, or if one of these is not even declared.
    #[track_caller]
    pub fn assert_used_but(&self, argued: &[&str]) {
        let unknown: Vec<&str> = argued.iter().filter(|right| !self.declared.contains(**right)).copied().collect();
        assert!(unknown.is_empty(), "these are not declared (any more): {}", unknown.join(", "));
        let unexpected: Vec<String> = (self.unused.iter())
            .filter(|need| !argued.contains(&need.right.to_string().as_str()))
            .map(|need| format!("{} (declared because {})", need.right, need.why))
            .collect();
        assert!(unexpected.is_empty(), "nothing used these:\n{}", unexpected.join("\n"));
    }

    /// What the missing rights mean for the role: each with the tests that used it as its reason.
    pub fn needs(&self) -> Vec<Need> {
        self.missing.iter().map(|missing| self.need(missing)).collect()
    }

    fn need(&self, missing: &Missing) -> Need {
        let own = |place: &Place| place.namespace.as_deref() == Some(self.namespace.as_str());
        let kind = (missing.right.group.as_str(), missing.right.resource.split('/').next().unwrap_or_default());
        let is_named_alone = |place: &Place| place.namespace.is_none() && place.name.is_some();
        let scope = if missing.places.iter().all(own) {
            Scope::Own
        } else if CLUSTER_KINDS.contains(&kind) || missing.places.iter().any(is_named_alone) {
            Scope::Cluster
        } else {
            Scope::Served
        };
        // What is called after resources has ever new names; in the operator's own namespace and in the cluster one
        // name is one object.
        let names: BTreeSet<Option<&String>> = missing.places.iter().map(|place| place.name.as_ref()).collect();
        let names = match (scope, names.len(), names.first()) {
            (Scope::Own | Scope::Cluster, 1, Some(Some(name))) => vec![(*name).clone()],
            _ => Vec::new(),
        };
        let tests = missing.tests.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Need { names, part: Part::Work, ..Need::new(missing.right.clone(), scope, format!("seen in {tests}")) }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for missing in &self.missing {
            let where_ = |place: &Place| match (&place.namespace, &place.name) {
                (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
                (Some(namespace), None) => format!("namespace {namespace}"),
                (None, Some(name)) => name.clone(),
                (None, None) => "all".to_owned(),
            };
            let places: Vec<String> = missing.places.iter().map(where_).collect();
            let tests: Vec<&str> = missing.tests.iter().map(String::as_str).collect();
            writeln!(f, "missing: {} ({}), used by {}", missing.right, places.join(", "), tests.join(", "))?;
        }
        for need in &self.unused {
            writeln!(f, "unused: {}, declared because {}", need.right, need.why)?;
        }
        Ok(())
    }
}

fn note(missing: &mut Vec<Missing>, right: &Right, places: Vec<Place>, test: &str) {
    let position = missing.iter().position(|known| known.right == *right).unwrap_or_else(|| {
        missing.push(Missing { right: right.clone(), places: BTreeSet::new(), tests: BTreeSet::new() });
        missing.len() - 1
    });
    missing[position].places.extend(places);
    missing[position].tests.insert(test.to_owned());
}

/// Whether the recording has a call that takes `need`.
fn uses(recording: &Recording, need: &Need) -> bool {
    let is_it = |place: &Place| need.names.is_empty() || place.name.as_ref().is_some_and(|it| need.names.contains(it));
    recording.rights.iter().any(|(right, uses)| *right == need.right && uses.places.iter().any(is_it))
}
