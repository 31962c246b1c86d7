//! Calls of webhooks and of other servers: where they are, whether they are who they should be, and the one request over HTTPS.

mod client;
mod connections;
mod destination;
mod dialer;
mod trust;

pub(crate) use client::{Webhooks, reason};
pub(crate) use connections::{Connections, connections};
pub(crate) use destination::ClientConfig;
pub(crate) use dialer::{Dialer, UnservedError, ready_endpoints, service_addresses, service_slices};
pub(crate) use trust::{check_bundle, extension_tls};
