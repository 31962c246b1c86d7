//! What a cluster is told at its start.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use windlass_apiserver::admission::{Plugin, Plugins};
use windlass_apiserver::auth::StaticTokens;
use windlass_clock::Clock;
use windlass_controllers::{Name, Set};

use crate::ClusterRange;

/// The usual port of a Kubernetes API server.
const PORT_DEFAULT: u16 = 6443;

/// Pods that a node accepts unless told otherwise, as kubelet's default.
pub const PODS_DEFAULT: u32 = 110;
/// The most Pods that a node can be told to accept: their addresses are half of the cluster's range.
pub const PODS_MAX: u32 = 10_000;

/// What runs beside the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nothing: the API alone.
    Bare,
    /// Garbage collection, namespaces and service accounts.
    Gc,
    /// All controllers, with nodes that only seem to run Pods.
    Workloads,
    /// All controllers, with a node that runs Pods as processes.
    #[default]
    Node,
}

/// A word that is not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a profile; choose one of bare, gc, workloads, node")]
pub struct UnknownProfile(String);

/// How Pods are kept apart from one another and from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// By their files, users and processes. They share the machine's network, each with an address of its own.
    #[default]
    Sandbox,
    /// Besides by a network namespace for each; needs root.
    Namespaces,
    /// By runc, in a network namespace for each; needs root.
    Runc,
}

impl Isolation {
    /// Whether each Pod has a network of its own.
    pub fn has_networks(self) -> bool {
        self != Self::Sandbox
    }
}

/// Where a cluster is reachable, beside from within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Nowhere,
    /// On a port of its loopback address; 0 takes any.
    Port(u16),
}

/// What a cluster is told at its start.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Where it keeps everything; without one, in memory until it ends.
    pub dir: Option<PathBuf>,
    /// What runs beside the API server.
    pub profile: Profile,
    /// Where it is reachable.
    pub listen: Listen,
    /// The controllers, if not those of the profile.
    pub controllers: Option<Set>,
    /// Fixed tokens that are accepted.
    pub tokens: StaticTokens,
    /// How many nodes only seem to run Pods, with profile `Workloads`.
    pub fake_nodes: usize,
    /// The name of its node.
    pub node_name: String,
    /// The image store, which other clusters may share.
    pub images: PathBuf,
    /// Where the API server and the controllers take the time from.
    pub clock: Clock,
    /// How many Pods its node accepts, at most [`PODS_MAX`].
    pub pods_max: u32,
    /// How long Pods wait for the next start if this process is killed; zero ends them with it.
    pub survival: Duration,
    /// How Pods are kept apart; what it was at the first start if nothing is said.
    pub isolation: Option<Isolation>,
    /// The range of addresses of Pods with networks of their own; one that is free if nothing is said.
    pub network: Option<ClusterRange>,
    /// Whether Pods are held to their limits by control groups, where this user has some.
    pub cgroups: bool,
    /// Where requests are logged, if anywhere.
    pub audit: Option<AuditConfig>,
}

/// Where requests are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file, a line of JSON per request.
    pub log: PathBuf,
    /// The policy that says which requests; without one, all.
    pub policy: Option<PathBuf>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            dir: None,
            profile: Profile::default(),
            listen: Listen::Port(PORT_DEFAULT),
            controllers: None,
            tokens: StaticTokens::default(),
            fake_nodes: 1,
            node_name: "windlass".to_owned(),
            images: images_default(),
            pods_max: PODS_DEFAULT,
            survival: Duration::ZERO,
            isolation: None,
            network: None,
            cgroups: true,
            clock: Clock::system(),
            audit: None,
        }
    }
}

impl ClusterConfig {
    /// A cluster in memory that only this process reaches.
    pub fn in_memory(profile: Profile) -> Self {
        ClusterConfig { profile, listen: Listen::Nowhere, ..ClusterConfig::default() }
    }

    /// A cluster in a directory, on the usual port.
    pub fn in_directory(dir: impl Into<PathBuf>, profile: Profile) -> Self {
        ClusterConfig { dir: Some(dir.into()), profile, ..ClusterConfig::default() }
    }

    pub(crate) fn controllers(&self) -> Set {
        self.controllers.clone().unwrap_or_else(|| match self.profile {
            Profile::Bare => Set::none(),
            Profile::Gc => Set::gc(),
            Profile::Workloads => Set::workloads(),
            Profile::Node => Set::node(),
        })
    }

    /// Some plugins need a controller that undoes what they do.
    pub(crate) fn plugins(&self) -> Plugins {
        let table = [
            (Name::ServiceAccount, Plugin::ServiceAccount),
            (Name::Volumes, Plugin::StorageObjectInUseProtection),
            (Name::NodeLifecycle, Plugin::TaintNodesByCondition),
        ];
        let runs = |(name, _): &(Name, Plugin)| self.controllers().has(*name);
        table.into_iter().filter(runs).fold(Plugins::default(), |plugins, (_, plugin)| plugins.with(plugin))
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(word: &str) -> Result<Self, UnknownProfile> {
        match word {
            "bare" => Ok(Profile::Bare),
            "gc" => Ok(Profile::Gc),
            "workloads" => Ok(Profile::Workloads),
            "node" => Ok(Profile::Node),
            _ => Err(UnknownProfile(word.to_owned())),
        }
    }
}

/// The image store of this user: `$XDG_CACHE_HOME/windlass/images`.
pub fn images_default() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    cache.unwrap_or_else(env::temp_dir).join("windlass").join("images")
}
