//! Keeps PostgreSQL clusters running: the operator, and the supervisor that is in every Pod of theirs.
//!
//! The operator (`operator`) decides what there is: members, Services, passwords, who may go when. The supervisor (`instance`)
//! decides what one server does. They meet in objects (`wire`): the plan, the lease of the primary, what members say of themselves.

mod admission;
mod archive;
mod backups;
mod instance;
mod kind;
mod names;
mod operator;
mod parameters;
mod supervisor;
mod wire;

use windlass::{App, Crew};

pub use backups::PostgresBackups;
pub use kind::{
    ArchiveStatus, DeletionPolicy, MemberStatus, PostgresCluster, PostgresClusterSpec, PostgresClusterStatus, Recovery,
    RestoredStatus, Storage, SwitchoverStatus, Synchronous,
};
pub use names::SWITCHOVER;
pub use operator::PostgresOperator;

/// The operator as a program: it keeps clusters, and serves the backups of them.
pub fn app() -> Crew {
    windlass::program("postgres-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .with(clusters())
        .with(windlass::backup::backups(PostgresBackups::default()))
        .with(windlass::backup::schedules::<PostgresBackups>())
        .with(windlass::backup::restores(PostgresBackups::default()))
}

fn clusters() -> App<PostgresOperator> {
    let app = windlass::operator(PostgresOperator::default())
        .validating(admission::judge)
        .command(instance::COMMAND, "Runs one server of a cluster, inside of its Pod", instance::main)
        .command(archive::COMMAND, "Works on the archive of a cluster", archive::main);
    operator::declare(app)
}
