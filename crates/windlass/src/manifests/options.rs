//! How an operator is to be run on a cluster.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;

use crate::app::Program;

/// How an operator is to be run on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestOptions {
    /// The namespace of the operator itself.
    pub namespace: String,
    /// The image to run.
    pub image: String,
    /// The command in the image; the image's own if it is empty.
    pub command: Vec<String>,
    /// The namespaces whose resources are served; all if none is said. The operator then has roles in these alone.
    pub watch_namespaces: Vec<String>,
    /// How many replicas run. One of them works and the others stand by, unless there are shards.
    pub replicas: u32,
    /// Into how many parts the work is divided, for all replicas to share.
    pub shards: Option<u32>,
    /// Labels that every object gets besides its own.
    pub labels: BTreeMap<String, String>,
    /// What comes with it, besides what it cannot run without.
    pub extras: BTreeSet<Extra>,
}

/// Something that an operator can run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Extra {
    /// The Service by which metrics are found.
    Metrics,
    /// The policy that lets nothing reach the operator but what it is there for.
    NetworkPolicy,
    /// Roles for people: who may view or edit a namespace may so the operator's kinds in it.
    KindRoles,
    /// The label that keeps Pods that are not `restricted` out of the operator's namespace.
    PodSecurity,
}

impl Extra {
    /// All of them.
    pub fn all() -> BTreeSet<Self> {
        Self::value_variants().iter().copied().collect()
    }
}

impl ManifestOptions {
    /// A namespace called after the operator, with `-system`, an image of the operator's name, one replica, everything.
    pub fn of(program: &dyn Program) -> Self {
        let stem = program.name().trim_end_matches("-operator");
        let tag = program.version().unwrap_or("latest");
        Self {
            namespace: format!("{stem}-system"),
            image: format!("{}:{tag}", program.name()),
            command: Vec::new(),
            watch_namespaces: Vec::new(),
            replicas: 1,
            shards: None,
            labels: BTreeMap::new(),
            extras: Extra::all(),
        }
    }
}
