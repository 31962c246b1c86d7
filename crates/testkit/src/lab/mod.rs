//! The laboratory that explorations and campaigns share: one run of an operator, what goes wrong in it, and what must be true.

mod built_in;
mod canary;
mod claims;
mod events;
mod form;
mod gate;
mod judge;
mod laboratory;
mod lives;
mod log;
mod plan;
mod report;
mod roles;
mod session;
mod settings;
mod user;
mod wishes;
mod work;
mod world;

pub use plan::{CallFault, Change, EventFault, Fault, Plan, StepFault, UnknownPlan};
pub use report::{Finding, Report};
pub use session::{Called, Delivered};
pub use settings::{PLAN_VARIABLE, PLANS_VARIABLE};
pub use user::User;
pub use world::World;

pub(crate) use claims::is_ready;
pub(crate) use form::view;
pub(crate) use judge::{Clean, Rules, Settled, Sight};
pub(crate) use laboratory::{Lab, Outcome, Scenario, Setup};
pub(crate) use report::schedule;
pub(crate) use session::Budget;
pub(crate) use settings::{Settings, setters};
pub(crate) use user::Item;
pub(crate) use work::Work;
pub(crate) use world::prefix;
