//! What every part of the node shares.

use std::path::PathBuf;
use std::sync::OnceLock;

use kube::Resource;

use crate::address::{AddressPool, PodAddress};
use crate::cache::Cache;
use crate::cgroup::{Cgroups, Controller, Unavailable};
use crate::chaos::{Board, Cuts};
use crate::config::NodeConfig;
use crate::event::Recorder;
use crate::image::ImageStore;
use crate::log::Logs;
use crate::names::NameServer;
use crate::pod::LiveContainers;
use crate::proxy::{Directory, Leaving};
use crate::remains;
use crate::room::Room;
use crate::sandbox::{Capabilities, Launcher};

/// What every part of the node shares.
pub(crate) struct Context {
    pub(crate) config: NodeConfig,
    pub(crate) capabilities: Capabilities,
    pub(crate) launcher: Launcher,
    /// Groups that hold containers to their limits, or why there are none.
    pub(crate) cgroups: Result<Cgroups, Unavailable>,
    pub(crate) images: ImageStore,
    pub(crate) events: Recorder,
    pub(crate) cache: Cache,
    pub(crate) logs: Logs,
    pub(crate) live: LiveContainers,
    pub(crate) addresses: AddressPool,
    /// The host's own in the network of Pods.
    #[expect(dead_code, reason = "held so that no Pod gets it")]
    pub(crate) gateway: Option<PodAddress>,
    pub(crate) directory: Directory,
    /// What Pods were promised of the node.
    pub(crate) room: Room,
    pub(crate) leaving: Leaving,
    /// What containers are to suffer.
    pub(crate) board: Board,
    /// Who is cut off from whom.
    pub(crate) cuts: Cuts,
    /// Set before the first Pod is looked at; empty if there is none.
    pub(crate) name_server: OnceLock<NameServer>,
}

impl Context {
    /// The directory of a Pod: volumes, writable layers, generated files.
    pub(crate) fn pod_directory(&self, uid: &str) -> PathBuf {
        self.config.dir.join("pods").join(uid)
    }

    /// The directory of those volumes of a Pod that are in memory.
    pub(crate) fn memory_directory(&self, uid: &str) -> PathBuf {
        remains::folder(&self.config.dir).join(uid)
    }

    /// Gives back what a Pod had of the machine's groups and networks. To be called where it may block.
    pub(crate) fn release(&self, uid: &str) {
        if let Ok(cgroups) = &self.cgroups {
            cgroups.remove_pod(uid);
        }
        if let Some(network) = &self.config.network {
            network.remove_space(uid);
        }
    }

    /// How containers are held to their limits, for people.
    pub(crate) fn limits(&self) -> String {
        match &self.cgroups {
            Ok(cgroups) if cgroups.has(Controller::Cpu) && cgroups.has(Controller::Memory) => cgroups.describe(),
            Ok(cgroups) => format!("{}; the rest as far as the node can see it", cgroups.describe()),
            Err(why) => {
                format!("memory and processes are watched by the node, limits of CPU only lower priorities: {why}")
            }
        }
    }

    /// The directory of a Pod's logs.
    pub(crate) fn log_directory(&self, pod: &impl Resource) -> PathBuf {
        let meta = pod.meta();
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        self.logs.pod(&text(&meta.namespace), &text(&meta.name), &text(&meta.uid))
    }
}
