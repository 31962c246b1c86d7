//! Pods: what is to be done for one (decided as plain data), and the task that does it.

mod bounds;
mod console;
mod container;
mod ending;
mod environment;
mod ephemeral;
mod eviction;
mod grace;
mod grpc;
mod hook;
mod inside;
mod launch;
mod live;
mod news;
mod observed;
mod plan;
mod preparation;
mod prober;
mod promise;
mod pull;
mod refusal;
mod resize;
mod rights;
mod signal;
mod sources;
mod spec;
mod status;
mod survival;
mod termination;
mod unverified;
mod watchdog;
mod worker;
mod writing;

pub(crate) mod downward;

pub(crate) use console::Console;
pub(crate) use downward::Addresses;
pub(crate) use inside::Inside;
pub(crate) use live::{Live, LiveContainers};
pub(crate) use plan::is_sidecar;
pub(crate) use signal::signal_number;
pub(crate) use sources::Sources;
pub(crate) use worker::{Worker, WorkerHandle};
