//! Exploration: the operator is crashed, refused, delayed and misled at every place where that can matter.

mod exploration;
mod generate;

use std::future::Future;

use windlass::Program;

pub use crate::lab::{
    CallFault, Called, Delivered, EventFault, Fault, Finding, PLAN_VARIABLE, PLANS_VARIABLE, Plan, Report, StepFault,
    UnknownPlan, User, World,
};
pub use exploration::Exploration;

/// Runs `scenario` with the operator that `make` makes, once without faults and then again for every fault at every place
/// where it can matter, and fails if one of the runs does not end as the one without faults.
///
/// [`Exploration`] has what can be said beyond that.
///
/// # Panics
/// If something is found: the message tells which plan, what is wrong, and how to run that plan again.
pub fn explore<P: Program + 'static, F: Future<Output = ()> + 'static>(
    make: impl Fn() -> P + Send + Sync + 'static,
    scenario: impl Fn(User) -> F + Send + Sync + 'static,
) {
    Exploration::of(make).run(scenario).assert();
}
