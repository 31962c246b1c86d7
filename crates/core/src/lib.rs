//! What an operator is, as values and traits.

pub mod admission;
mod child;
pub mod condition;
pub mod constraints;
mod difference;
mod event;
pub mod names;
mod operator;
mod outcome;
mod pods;
mod resource;
mod schema;
mod status;
mod versions;
mod world;

pub use child::{Child, ChildError};
pub use condition::{Statement, Truth};
pub use event::{Event, Severity};
pub use operator::Operator;
pub use outcome::{Desired, Outcome};
pub use pods::Pods;
pub use resource::{Column, CustomResource, Facts, Rule, Scale, definition};
pub use status::{NoStatus, Status};
pub use versions::{Chain, ConvertError, Loss, Losses, Refused, Versions};
pub use world::{View, World};
