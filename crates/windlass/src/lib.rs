//! What operator authors depend on: one derive, one trait, one `main`.
//!
//! ```no_run
//! use windlass::prelude::*;
//!
//! /// A greeting, kept in a ConfigMap.
//! #[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
//! #[resource(group = "example.com", version = "v1", kind = "Greeting")]
//! pub struct GreetingSpec {
//!     pub text: String,
//! }
//!
//! struct Greeter;
//!
//! impl Operator for Greeter {
//!     type Resource = Greeting;
//!
//!     fn desired(&self, greeting: &Greeting, _: &World) -> Outcome<NoStatus> {
//!         let text = [("text".to_owned(), greeting.spec.text.clone())].into();
//!         let config_map = ConfigMap { metadata: named(greeting.name_any()), data: Some(text), ..Default::default() };
//!         Desired::new().child(config_map).settled()
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     windlass::operator(Greeter).owns::<ConfigMap>().main()
//! }
//! ```

/// The derives write this name.
extern crate self as windlass;

mod app;
pub mod backup;
pub mod bundle;
mod capability;
mod command;
mod connect;
mod crew;
mod handlers;
mod log;
mod manifests;
mod migrate;
pub mod observe;
mod permissions;
pub mod plan;
pub mod prelude;
pub mod rbac;
mod reconciler;
mod webhook;

pub use app::{App, OwnCommand, Program, operator};
pub use capability::{Ability, Provided};
pub use crew::{Crew, program};
pub use handlers::handlers;
pub use manifests::{Extra, ManifestOptions};
pub use reconciler::{ReconcileApp, controller, reconcile};
pub use windlass_core::admission::{self, Hook, Operation, Request, Verdict};
pub use windlass_core::{
    Chain, Child, Column, ConvertError, CustomResource, Desired, Event, Facts, FailedRevision, Health, KnownGood, Loss,
    Losses, NoStatus, Operator, OrderError, Outcome, Part, Piece, Pods, Readiness, Refused, Rule, Scale, Severity,
    Statement, Status, Trial, Truth, UpgradeStatus, Upgrades, Versions, View, World, condition, definition, names,
};
pub use windlass_derive::{Resource, Schema};
pub use windlass_runtime as runtime;
pub use windlass_runtime::engine::Cleanup;
pub use windlass_runtime::engine::handlers::{
    Answer, Cause, Changed, Failure, HandlerContext, Handlers, Report, Retry,
};

pub use {k8s_openapi, kube, schemars, serde, serde_json};

/// The examples of the book.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/backup.md")]
    mod backup {}
    #[doc = include_str!("../../../docs/deletion.md")]
    mod deletion {}
    #[doc = include_str!("../../../docs/handlers.md")]
    mod handlers {}
    #[doc = include_str!("../../../docs/observability.md")]
    mod observability {}
    #[doc = include_str!("../../../docs/operators.md")]
    mod operators {}
    #[doc = include_str!("../../../docs/packaging.md")]
    mod packaging {}
    #[doc = include_str!("../../../docs/parts.md")]
    mod parts {}
    #[doc = include_str!("../../../docs/projects.md")]
    mod projects {}
    #[doc = include_str!("../../../docs/resources.md")]
    mod resources {}
    #[doc = include_str!("../../../docs/runtime.md")]
    mod runtime {}
    #[doc = include_str!("../../../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../../../docs/upgrades.md")]
    mod upgrades {}
    #[doc = include_str!("../../../docs/versions.md")]
    mod versions {}
    #[doc = include_str!("../../../docs/webhooks.md")]
    mod webhooks {}
}

/// What the derive writes refers to these.
#[doc(hidden)]
pub mod __private {
    pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    pub use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
    pub use windlass_core::constraints::{Constraints, Immutables};
    pub use {kube, schemars, serde, serde_json};
}
