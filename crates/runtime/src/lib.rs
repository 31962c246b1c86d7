//! Informers, queue, workers, tap, leader election, probes, metrics: what runs an operator.

mod admin;
mod backoff;
mod cache;
mod controller;
pub mod engine;
mod events;
mod health;
mod informer;
mod key;
mod leader;
mod manager;
mod metrics;
mod object;
pub mod owners;
mod process;
mod queue;
mod reconcile;
pub mod tap;
mod watch;
pub mod webhook;

pub use backoff::Backoff;
pub use cache::{Cache, Change};
pub use controller::{ByObject, Controller};
pub use events::Recorder;
pub use health::{Check, Health};
pub use informer::{Informer, Informers, Subscription};
pub use key::ObjectKey;
pub use leader::LeaderConfig;
pub use manager::{Manager, ManagerConfig, RunError};
pub use metrics::{Metrics, QueueMetrics};
pub use object::Object;
pub use queue::{Key, Priority, Queue, Taken, Verdict};
pub use reconcile::{Action, Attempt, Context, Error, Handle, Process, Reconcile};
pub use watch::Watch;
pub use windlass_clock::Clock;
pub use windlass_core::{Event, Severity};
