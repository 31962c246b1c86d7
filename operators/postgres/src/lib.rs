//! Keeps PostgreSQL clusters running: the operator, and the supervisor that is in every Pod of theirs.
//!
//! The operator (`operator`) decides what there is: members, Services, passwords, who may go when. The supervisor (`instance`)
//! decides what one server does. They meet in objects (`wire`): the plan, the lease of the primary, what members say of themselves.

mod admission;
mod instance;
mod kind;
mod names;
mod operator;
mod parameters;
mod supervisor;
mod wire;

use windlass::App;

pub use kind::{
    DeletionPolicy, MemberStatus, PostgresCluster, PostgresClusterSpec, PostgresClusterStatus, Storage,
    SwitchoverStatus, Synchronous,
};
pub use names::SWITCHOVER;
pub use operator::PostgresOperator;

/// The operator as a program.
pub fn app() -> App<PostgresOperator> {
    let app = windlass::operator(PostgresOperator::default())
        .named("postgres-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .validating(admission::judge)
        .command(instance::COMMAND, "Runs one server of a cluster, inside of its Pod", instance::main);
    operator::declare(app)
}
