//! The controllers with everything going wrong that can: see `docs/explore.md`. `WINDLASS_PLANS=all` tries all plans.

#[path = "explore/budgets.rs"]
mod budgets;
#[path = "explore/daemons.rs"]
mod daemons;
#[path = "explore/deployments.rs"]
mod deployments;
#[path = "explore/endpoints.rs"]
mod endpoints;
#[path = "explore/garbage.rs"]
mod garbage;
#[path = "explore/jobs.rs"]
mod jobs;
#[path = "explore/namespaces.rs"]
mod namespaces;
#[path = "world/objects.rs"]
mod objects;
#[path = "explore/schedules.rs"]
mod schedules;
#[path = "explore/scheduling.rs"]
mod scheduling;
#[path = "explore/sets.rs"]
mod sets;
#[path = "explore/volumes.rs"]
mod volumes;

use std::future::Future;

use windlass_testkit::Controller;
use windlass_testkit::explore::{Exploration, User};

/// How many plans the tests try of each scenario.
const PLANS: usize = 10;

/// Explores some controllers, the others beside them; few plans, unless the environment says otherwise.
fn of(names: impl IntoIterator<Item = Controller>) -> Exploration {
    Exploration::of_controllers(names).plans(PLANS)
}

/// Fails with the report if something is found.
fn survives<F: Future<Output = ()> + 'static>(
    exploration: &Exploration,
    scenario: impl Fn(User) -> F + Send + Sync + 'static,
) {
    let report = exploration.run(scenario);
    println!("{report}");
    report.assert();
}
