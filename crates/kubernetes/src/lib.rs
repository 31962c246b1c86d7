//! The real control plane of Kubernetes on one machine: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
//!
//! One place says with which flags and keys they run; whoever compares Windlass with them, or runs tests on them, starts
//! them from here. [`ControlPlane`] starts all of them; the commands are there by themselves for those who measure.
//! Nothing here speaks HTTP: whether the API server is ready is for its clients to find out.

mod commands;
mod error;
mod keys;
mod kubeconfig;
mod plane;
mod process;
mod programs;

pub use commands::{Admission, Controllers, Place, free_port};
pub use error::PlaneError;
pub use keys::{Keys, User};
pub use kubeconfig::kubeconfig;
pub use plane::{ControlPlane, Plan};
pub use process::Process;
pub use programs::Programs;
