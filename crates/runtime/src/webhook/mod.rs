//! Webhooks: functions that the API server asks over HTTPS, with certificates that are made and renewed here, or by others.

mod certificates;
mod figures;
mod given;
mod keeper;
mod keys;
mod migration;
mod registration;
mod routes;
mod server;
mod service;
mod trust;

pub(crate) use figures::WebhookFamilies;
pub use migration::{Migrated, migrate};
pub use registration::{Reach, Registration};
pub use service::{ServeError, Serving, Way, Webhooks};
