//! How much of the life of an application an operator takes over.

use serde::{Deserialize, Serialize};
use windlass_core::Chain;
use windlass_core::admission::Task;
use windlass_runtime::engine::Use;

use crate::app::Program;
use crate::rbac::HOLDS;

/// How much of the life of an application an operator takes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// 1 to 5.
    pub level: u8,
    /// What the level is called.
    pub name: String,
    /// What the operator declares that it does.
    pub does: Vec<String>,
    /// What keeps it from the next level.
    pub lacks: String,
}

/// What an operator declares. Nothing that can be declared yet says that it upgrades what it runs and goes back when that
/// fails, which is the second level, so no operator is said to be above the first: a claim is no proof.
pub(super) fn capability(program: &dyn Program) -> Capability {
    let lacks = "Seamless Upgrades: nothing declares how what it runs is upgraded, and rolled back when that fails";
    Capability { level: 1, name: "Basic Install".to_owned(), does: deeds(program), lacks: lacks.to_owned() }
}

fn deeds(program: &dyn Program) -> Vec<String> {
    let registration = program.registration(Vec::new());
    let mut owned: Vec<String> =
        program.kinds().into_iter().filter(|it| it.usage == Use::Owns).map(|it| it.resource.kind).collect();
    owned.sort();
    owned.dedup();
    let has = |task: Task| registration.hooks.iter().any(|hook| hook.task == task);
    let is_scaled = program
        .crds()
        .iter()
        .flat_map(|it| &it.spec.versions)
        .any(|version| version.subresources.as_ref().is_some_and(|subresources| subresources.scale.is_some()));
    let holds = program.needs().iter().any(|need| need.why == HOLDS.1);
    [
        (!owned.is_empty()).then(|| format!("makes, repairs and removes {}", owned.join(", "))),
        is_scaled.then(|| "is scaled by the scale of its resources".to_owned()),
        holds.then(|| "cleans up before a resource goes, or remembers in it what was done".to_owned()),
        has(Task::Default).then(|| "fills in what resources do not say".to_owned()),
        has(Task::Validate).then(|| "refuses resources that cannot be served".to_owned()),
        registration.chains.iter().any(Chain::converts).then(|| "converts between versions of its kinds".to_owned()),
        Some("tells of itself by conditions, events, metrics, a dashboard and alerts".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
