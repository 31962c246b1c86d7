//! The controllers against the real API server, within this process: what the world looks like in the end.
#![expect(clippy::unwrap_used, reason = "what does not hold fails the test")]

#[path = "world/autoscaling.rs"]
mod autoscaling;
#[path = "world/batch.rs"]
mod batch;
#[path = "world/deployments.rs"]
mod deployments;
#[path = "world/disruption.rs"]
mod disruption;
#[path = "world/endpoints.rs"]
mod endpoints;
#[path = "world/garbage.rs"]
mod garbage;
#[path = "world/metrics.rs"]
mod metrics;
#[path = "world/namespaces.rs"]
mod namespaces;
#[path = "world/nodes.rs"]
mod nodes;
#[path = "world/objects.rs"]
mod objects;
#[path = "world/quotas.rs"]
mod quotas;
#[path = "world/scheduling.rs"]
mod scheduling;
#[path = "world/stateful.rs"]
mod stateful;
#[path = "world/volumes.rs"]
mod volumes;
#[path = "world/world.rs"]
mod world;
