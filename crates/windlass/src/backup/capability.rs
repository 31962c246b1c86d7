//! What an author implements, so that what their operator keeps can be backed up.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::PodSpec;
use kube::Resource;
use windlass_core::CustomResource;
use windlass_runtime::Object;

use super::kind::BackupStatus;
use super::record::{BackupOrder, RestoreOrder};

/// Why nothing can be done now, and may be later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// A CamelCase word.
    pub reason: String,
    /// What is waited for, for people.
    pub message: String,
}

impl Obstacle {
    /// An obstacle from its parts.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// The knowledge of how resources of one kind are backed up.
pub trait Backups: Send + Sync + 'static {
    /// The kind.
    type Target: CustomResource + Object + Resource<DynamicType = (), Scope = NamespaceResourceScope>;

    /// How backups can be taken, in a word each; the first is taken if nobody says.
    const METHODS: &'static [&'static str];

    /// `target` as it runs: that is backed up, and remembered with the backup. Say [`Upgrades::carried_out`] where upgrades are
    /// taken back, or a backup has a version that failed for its own.
    ///
    /// [`Upgrades::carried_out`]: windlass_core::Upgrades::carried_out
    fn carried_out(&self, target: &Self::Target) -> Self::Target {
        target.clone()
    }

    /// The Pod that takes a backup of `target`, or why none can be taken now.
    ///
    /// It has one container, which gets the order, a deadline and a way to leave its record from the runtime. It is run once: what
    /// it left behind when it failed must not be taken for a backup.
    ///
    /// # Errors
    /// An obstacle that may pass: it is asked again until the backup's deadline.
    fn take(&self, order: &BackupOrder, target: &Self::Target) -> Result<PodSpec, Obstacle>;

    /// The Pod that restores a backup into something that it throws away, sees that it answers, and leaves a
    /// [`VerificationRecord`](super::VerificationRecord) as its last words; none if this kind cannot be verified.
    fn verify(&self, id: &str, backup: &BackupStatus) -> Option<PodSpec> {
        let _ = (id, backup);
        None
    }

    /// The resource that comes into being from a backup: of the name and in the namespace that are asked for, as it was when the
    /// backup was taken, with whatever tells its operator to begin with the backup. It must never use data that is there already.
    ///
    /// # Errors
    /// Why there can be none. It is not asked again.
    fn restored(&self, order: &RestoreOrder) -> Result<Self::Target, String>;

    /// How far a resource is that came into being from a backup.
    fn progress(&self, target: &Self::Target) -> Progress;
}

/// How far a restored resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// On its way; what it does.
    Working(String),
    /// It works.
    Done {
        /// The backup that it began with, by its name in storage.
        backup: Option<String>,
        /// As of when its data is, for people.
        recovered_to: Option<String>,
    },
    /// It will not work; why, and what to do.
    Failed(String),
}
