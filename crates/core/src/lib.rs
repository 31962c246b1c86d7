//! What an operator is, as values and traits.

pub mod admission;
mod child;
pub mod condition;
pub mod constraints;
mod difference;
mod event;
pub mod names;
mod newest;
mod operator;
mod order;
mod outcome;
mod part;
mod pods;
mod readiness;
mod resource;
pub mod sample;
pub mod schedule;
mod schema;
mod status;
mod upgrade;
mod versions;
mod world;

pub use child::{Child, ChildError};
pub use condition::{Statement, Truth};
pub use event::{Event, Severity};
pub use operator::Operator;
pub use order::OrderError;
pub use outcome::{Desired, Outcome};
pub use part::{Part, Piece};
pub use pods::Pods;
pub use readiness::Readiness;
pub use resource::{Column, CustomResource, Facts, Rule, Scale, definition};
pub use status::{NoStatus, Status};
pub use upgrade::{
    ATTEMPTS_MAX, FailedRevision, Health, KnownGood, News, Situation, Terms, Trial, UpgradeStatus, Upgrades,
};
pub use versions::{Chain, ConvertError, Loss, Losses, Refused, Versions};
pub use world::{View, World};
