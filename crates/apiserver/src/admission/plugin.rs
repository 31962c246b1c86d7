//! Which plugins a server runs.

use std::collections::BTreeSet;

/// A plugin that can be switched off, by the name that Kubernetes gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    /// Namespaces must be there, and nothing begins in one that ends.
    NamespaceLifecycle,
    /// Defaults and bounds for what Pods and claims ask for.
    LimitRanger,
    /// Pods run as a service account and get its token.
    ServiceAccount,
    /// Pods stay on a node in trouble for a while.
    DefaultTolerationSeconds,
    /// The number behind the name of a priority class.
    Priority,
    /// The overhead and place of Pods that name a runtime class.
    RuntimeClass,
    /// Claims get the default storage class.
    DefaultStorageClass,
    /// Claims grow only where their storage class allows it.
    PersistentVolumeClaimResize,
    /// Pods do not grow beyond what their node has.
    PodResizeValidator,
    /// What a namespace may use in all. Quotas are in force once a controller has counted what is there.
    ResourceQuota,
    /// Volumes and claims go only when nobody uses them; needs the controllers that see to it.
    StorageObjectInUseProtection,
    /// New nodes are kept free of Pods until they are ready; needs the controller that sees to it.
    TaintNodesByCondition,
}

impl std::str::FromStr for Plugin {
    type Err = UnknownPlugin;

    fn from_str(name: &str) -> Result<Self, UnknownPlugin> {
        Ok(match name {
            "NamespaceLifecycle" => Plugin::NamespaceLifecycle,
            "LimitRanger" => Plugin::LimitRanger,
            "ServiceAccount" => Plugin::ServiceAccount,
            "DefaultTolerationSeconds" => Plugin::DefaultTolerationSeconds,
            "Priority" => Plugin::Priority,
            "RuntimeClass" => Plugin::RuntimeClass,
            "DefaultStorageClass" => Plugin::DefaultStorageClass,
            "PersistentVolumeClaimResize" => Plugin::PersistentVolumeClaimResize,
            "PodResizeValidator" => Plugin::PodResizeValidator,
            "ResourceQuota" => Plugin::ResourceQuota,
            "StorageObjectInUseProtection" => Plugin::StorageObjectInUseProtection,
            "TaintNodesByCondition" => Plugin::TaintNodesByCondition,
            _ => return Err(UnknownPlugin(name.to_owned())),
        })
    }
}

/// A name that no plugin has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no admission plugin {0:?} that can be switched")]
pub struct UnknownPlugin(String);

/// A set of plugins.
#[derive(Clone, Debug)]
pub struct Plugins(BTreeSet<Plugin>);

impl Default for Plugins {
    /// All that work without a controller.
    fn default() -> Self {
        let plugins = [
            Plugin::NamespaceLifecycle,
            Plugin::LimitRanger,
            Plugin::DefaultTolerationSeconds,
            Plugin::Priority,
            Plugin::RuntimeClass,
            Plugin::DefaultStorageClass,
            Plugin::PersistentVolumeClaimResize,
            Plugin::PodResizeValidator,
            Plugin::ResourceQuota,
        ];
        Plugins(plugins.into())
    }
}

impl Plugins {
    /// Whether `plugin` runs.
    pub fn has(&self, plugin: Plugin) -> bool {
        self.0.contains(&plugin)
    }

    /// Switches `plugin` on.
    #[must_use]
    pub fn with(mut self, plugin: Plugin) -> Self {
        self.0.insert(plugin);
        self
    }

    /// Switches `plugin` off.
    #[must_use]
    pub fn without(mut self, plugin: Plugin) -> Self {
        self.0.remove(&plugin);
        self
    }
}
