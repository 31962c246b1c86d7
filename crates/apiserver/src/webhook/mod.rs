//! Calls of webhooks: where they are, whether they are who they should be, and the one request over HTTPS.

mod client;
mod destination;
mod dialer;
mod trust;

pub(crate) use client::Webhooks;
pub(crate) use destination::ClientConfig;
pub(crate) use trust::check_bundle;
