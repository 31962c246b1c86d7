//! How Pods are kept apart, as it is typed.

use clap::ValueEnum;
use windlass_cluster::Isolation;

/// How Pods are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationName {
    /// By their files, users, processes and addresses; they share the machine's network.
    Sandbox,
    /// And by a network namespace for each Pod; needs root.
    Namespaces,
    /// By runc, in a network namespace for each Pod; needs root and the program runc.
    Runc,
}

impl IsolationName {
    /// What it means.
    pub(crate) fn isolation(self) -> Isolation {
        match self {
            Self::Sandbox => Isolation::Sandbox,
            Self::Namespaces => Isolation::Namespaces,
            Self::Runc => Isolation::Runc,
        }
    }

    /// The isolation as it is typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Namespaces => "namespaces",
            Self::Runc => "runc",
        }
    }
}
