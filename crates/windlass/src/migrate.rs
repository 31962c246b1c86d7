//! The command `migrate`: all objects are stored as the storage version of their kind.

use kube::Client;
use windlass_core::Chain;
use windlass_runtime::webhook::{Migrated, migrate};

use crate::app::Program;

/// Why not all objects are where they should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    #[error("nothing is to be moved: the kinds have one version each")]
    OneVersion,
    #[error("the cluster stores another version than {0}: apply what the command `crd` prints first")]
    OtherDefinition(&'static str),
    #[error("{0} objects could not be written, see above: run this again")]
    Left(usize),
    #[error(
        "cannot move objects: {0}; it takes a right to the objects of all namespaces and to the definition's status"
    )]
    Api(#[from] kube::Error),
}

/// `migrate`.
pub(crate) async fn run(program: &dyn Program, client: Client) -> Result<(), MigrateError> {
    let chains = program.registration(Vec::new()).chains;
    if !chains.iter().any(Chain::converts) {
        return Err(MigrateError::OneVersion);
    }
    for chain in chains.iter().filter(|chain| chain.converts()) {
        match migrate(&client, chain).await? {
            Migrated::Done(count) => println!("{count} objects were moved; all are stored as {}", chain.stored()),
            Migrated::OtherDefinition => return Err(MigrateError::OtherDefinition(chain.stored())),
            Migrated::Left(count) => return Err(MigrateError::Left(count)),
        }
    }
    Ok(())
}
