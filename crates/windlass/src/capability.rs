//! How much of the life of an application an operator takes over, computed from what it implements.
//!
//! An [`Ability`] is declared in one place, [`App::able`], by the part of Windlass that carries it out with the knowledge that
//! an author implements: [`backups`](crate::backup::backups) does so, which asks for the trait [`Backups`](crate::backup::Backups).
//! There is no way for an author to claim one.

use serde::{Deserialize, Serialize};
use windlass_core::admission::Task;
use windlass_core::{Chain, CustomResource};
use windlass_runtime::engine::{Style, Use};

use crate::app::{App, Program};
use crate::rbac::HOLDS;

/// The group of the kinds by which people ask for capabilities: they are no applications themselves.
const OWN_GROUP: &str = "windlass.dev";

/// Something that an operator does for what it keeps, beyond making it and keeping it as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Brings it to another version, and back when that fails.
    Upgrade,
    /// Backs it up when somebody asks.
    Backup,
    /// Backs it up by a schedule.
    Schedule,
    /// Brings it back from a backup.
    Restore,
}

impl Ability {
    /// What an operator that has it does, for people.
    fn deed(self, kind: &str) -> String {
        match self {
            Self::Upgrade => format!("upgrades {kind}, and goes back when that fails"),
            Self::Backup => format!("backs up {kind} when asked"),
            Self::Schedule => format!("backs up {kind} by a schedule"),
            Self::Restore => format!("restores {kind} from a backup"),
        }
    }

    /// What is missing without it, for people.
    fn lack(self, kinds: &str) -> String {
        match self {
            Self::Upgrade => format!("how {kinds} is upgraded, and rolled back when that fails"),
            Self::Backup => format!("how {kinds} is backed up"),
            Self::Schedule => format!("how {kinds} is backed up by a schedule"),
            Self::Restore => format!("how {kinds} is restored"),
        }
    }
}

/// An ability for one kind. Only the part of Windlass that carries it out makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    ability: Ability,
    group: &'static str,
    kind: &'static str,
}

impl Provided {
    /// What it is.
    pub fn ability(&self) -> Ability {
        self.ability
    }

    /// The kind of what it is for.
    pub fn kind(&self) -> &str {
        self.kind
    }
}

impl<O: Style> App<O> {
    /// The operator is able to do this with resources of the kind `K`: said by whatever carries it out, and only there.
    pub(crate) fn able<K: CustomResource>(mut self, ability: Ability) -> Self {
        let facts = K::facts();
        self.abilities.push(Provided { ability, group: facts.group, kind: facts.kind });
        self
    }
}

/// How much of the life of an application an operator takes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// 1 to 5.
    pub level: u8,
    /// What the level is called.
    pub name: String,
    /// What the operator does, by what it declares and implements.
    pub does: Vec<String>,
    /// What keeps it from the next level.
    pub lacks: String,
}

/// The five levels of the catalogs, each with what an operator must do for every kind that it keeps. Each includes those
/// before it. No ability stands for the last two as yet, so no operator has them.
const LEVELS: [(&str, Demand); 5] = [
    ("Basic Install", Demand::Abilities(&[])),
    ("Seamless Upgrades", Demand::Abilities(&[Ability::Upgrade])),
    ("Full Lifecycle", Demand::Abilities(&[Ability::Backup, Ability::Schedule, Ability::Restore])),
    ("Deep Insights", Demand::Unknown("metrics and alerts of what it runs, besides those of the operator itself")),
    ("Auto Pilot", Demand::Unknown("healing, scaling and tuning by what is measured")),
];

/// What a level asks for.
#[derive(Clone, Copy)]
enum Demand {
    /// All of these, for each kind.
    Abilities(&'static [Ability]),
    /// What nothing can declare yet.
    Unknown(&'static str),
}

/// A kind that an operator keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    group: String,
    kind: String,
}

/// What an operator is able to do.
pub(crate) fn capability(program: &dyn Program) -> Capability {
    let provided = program.abilities();
    let mut does = deeds(program);
    does.extend(provided.iter().map(|it| it.ability.deed(it.kind)));
    let (level, lacks) = reached(&kept(program), &provided);
    let name = LEVELS[usize::from(level) - 1].0.to_owned();
    Capability { level, name, does, lacks }
}

/// The kinds whose objects are applications to their users.
fn kept(program: &dyn Program) -> Vec<Kept> {
    let kinds = program.crds().into_iter().map(|it| Kept { group: it.spec.group, kind: it.spec.names.kind });
    kinds.filter(|it| it.group != OWN_GROUP).collect()
}

/// The highest level of which nothing is missing, with what the next one asks for. The first is that of every operator.
fn reached(kept: &[Kept], provided: &[Provided]) -> (u8, String) {
    for (level, (name, demand)) in (0..).zip(LEVELS) {
        let missing = match demand {
            Demand::Abilities(needed) => missing(needed, kept, provided),
            Demand::Unknown(what) => Some(what.to_owned()),
        };
        if let Some(what) = missing {
            return (level, format!("{name}: nothing declares {what}"));
        }
    }
    (LEVELS.len() as u8, String::new())
}

fn missing(needed: &[Ability], kept: &[Kept], provided: &[Provided]) -> Option<String> {
    if kept.is_empty() && !needed.is_empty() {
        return Some("a kind of its own that it keeps".to_owned());
    }
    let lacks = |ability: &Ability| {
        let has =
            |it: &&Kept| provided.iter().any(|of| of.ability == *ability && of.group == it.group && of.kind == it.kind);
        let without: Vec<&str> = kept.iter().filter(|it| !has(it)).map(|it| it.kind.as_str()).collect();
        (!without.is_empty()).then(|| ability.lack(&without.join(" or ")))
    };
    let all: Vec<String> = needed.iter().filter_map(lacks).collect();
    (!all.is_empty()).then(|| all.join(", or "))
}

/// What follows from the kinds and the functions that an operator declares.
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

#[cfg(test)]
mod tests {
    use super::Ability::{Backup, Restore, Schedule, Upgrade};
    use super::*;

    fn check(kinds: &[&str], provided: &[(Ability, &'static str)], level: u8, lacks: &str) {
        let kept: Vec<Kept> =
            kinds.iter().map(|kind| Kept { group: "example.com".into(), kind: (*kind).into() }).collect();
        let provided: Vec<Provided> =
            provided.iter().map(|&(ability, kind)| Provided { ability, group: "example.com", kind }).collect();
        assert_eq!(reached(&kept, &provided), (level, lacks.to_owned()), "{kinds:?} {provided:?}");
    }

    #[test]
    fn a_level_is_reached_when_nothing_below_it_is_missing_for_any_kind() {
        let upgrades = "Seamless Upgrades: nothing declares how Db is upgraded, and rolled back when that fails";
        let insights =
            "Deep Insights: nothing declares metrics and alerts of what it runs, besides those of the operator itself";
        check(&["Db"], &[], 1, upgrades);
        // Backups do not make up for upgrades.
        check(&["Db"], &[(Backup, "Db"), (Schedule, "Db"), (Restore, "Db")], 1, upgrades);
        check(
            &["Db"],
            &[(Upgrade, "Db")],
            2,
            "Full Lifecycle: nothing declares how Db is backed up, or how Db is backed up by a schedule, or how Db is restored",
        );
        check(
            &["Db"],
            &[(Upgrade, "Db"), (Backup, "Db"), (Schedule, "Db")],
            2,
            "Full Lifecycle: nothing declares how Db is restored",
        );
        let all = [(Upgrade, "Db"), (Backup, "Db"), (Schedule, "Db"), (Restore, "Db")];
        check(&["Db"], &all, 3, insights);
        // What holds for one kind does not hold for another of the same program.
        check(
            &["Db", "Cache"],
            &all,
            1,
            "Seamless Upgrades: nothing declares how Cache is upgraded, and rolled back when that fails",
        );
        check(&["Db"], &[(Upgrade, "Other")], 1, upgrades);
        check(&[], &all, 1, "Seamless Upgrades: nothing declares a kind of its own that it keeps");
    }
}
