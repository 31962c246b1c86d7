//! Role-based access control: rules, who has them, and nobody gives away more than they hold.

mod aggregation;
mod authorizer;
mod cover;
mod policy;
mod rule;

pub use aggregation::{aggregate, keep_aggregated};
pub use authorizer::Authorizer;
pub use cover::{describe_missing, uncovered};
pub use policy::{Policy, RoleReference};
pub use rule::Rule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
