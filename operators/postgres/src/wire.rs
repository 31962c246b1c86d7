//! What the operator tells the members, what they tell the operator and each other, and what they remember together.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windlass::runtime::tenure::Marks;

/// What is wanted of the members: written by the operator into a ConfigMap, read by each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// The members that are to be.
    pub(crate) members: Vec<String>,
    /// How many standbys must have a commit before it is acknowledged.
    pub(crate) synchronous: u32,
    /// The settings that people ask for.
    pub(crate) parameters: BTreeMap<String, String>,
    /// The length of the lease.
    pub(crate) lease_seconds: u32,
    /// The member that is to be the primary, if another one is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) successor: Option<String>,
    /// The folder of the cluster's archives in its storage, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archive: Option<String>,
    /// The backup that the data is made from, if it is not made from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// The member that is to restart its server for settings that need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restart: Option<String>,
}

impl Plan {
    /// A hash of the settings that people ask for: what a member says of itself is said of these.
    pub(crate) fn settings(&self) -> String {
        settings(&self.parameters)
    }
}

/// A hash of settings that people ask for.
pub(crate) fn settings(parameters: &BTreeMap<String, String>) -> String {
    let text: String = parameters.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    hex::encode(&Sha256::digest(text)[..5])
}

/// How far the data of a member goes: first by timeline, then by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) timeline: u32,
    pub(crate) lsn: u64,
}

/// What a server serves as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// It takes writes.
    Primary,
    /// It follows, or waits for somebody to follow.
    Replica,
    /// It does not run, or does not answer.
    #[default]
    None,
}

/// What a member says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself, not a state of one thing")]
pub(crate) struct Report {
    /// Its name.
    pub(crate) member: String,
    /// The identity of its data; none if it has no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_id: Option<String>,
    /// What its server serves as.
    pub(crate) role: Role,
    /// How far its data goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<Position>,
    /// Whom it receives from, or would as soon as it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) follows: Option<String>,
    /// Whether it receives.
    pub(crate) streaming: bool,
    /// Whether a former primary may be led back to this one: the control file knows the timeline.
    pub(crate) rewindable: bool,
    /// The version of its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Whether settings wait for a restart.
    pub(crate) pending_restart: bool,
    /// The settings that it was told, by [`Plan::settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<String>,
    /// Whether its server has read them: before, it does not know whether they need a restart.
    pub(crate) has_read: bool,
    /// How often in a row its server could not be started with them, or ended.
    pub(crate) failed_starts: u32,
    /// Why, the last time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) failure: String,
    /// The settings that its server runs without, since it does not take them, and would not start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// What it does, in a word, and why it does no more.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Of a server that archives: where to, and how that goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) archive: Option<Archiving>,
    /// The backup that this member made the data from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restored: Option<Restored>,
    /// Of a primary: how far those behind it are, in bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lags: BTreeMap<String, u64>,
    /// Of a primary: those that may have to be asked before another one can take over.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) voters: BTreeSet<String>,
}

/// What the data of a new cluster is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    /// Where the backup is, or backups are, in the storage.
    pub(crate) path: String,
    /// The time as of which the data is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
}

/// What the data of a member was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restored {
    /// The backup, by its name in storage.
    pub(crate) backup: String,
    /// When the last commit was made that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recovered_to: Option<String>,
}

/// How a server gets its log into the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Archiving {
    /// The archive.
    pub(crate) path: String,
    /// The file that it brought there last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// The file that it cannot bring there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failing: Option<String>,
}

/// A rule of acknowledgement: a commit is on the primary and on at least `need` of `of`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quorum {
    pub(crate) need: u32,
    pub(crate) of: BTreeSet<String>,
}

impl Quorum {
    /// How many of the voters have to be seen, so that one of them has every acknowledged commit.
    pub(crate) fn to_see(&self) -> usize {
        (self.of.len() + 1).saturating_sub(self.need as usize)
    }
}

/// What the members remember together, on the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The identity of the cluster's data. As soon as it is set, no data is ever made anew.
    pub(crate) system_id: Option<String>,
    /// Who led last: it has every acknowledged commit.
    pub(crate) leader: Option<String>,
    /// The rules that may have been in force when a commit was acknowledged; `None` if that is not known.
    pub(crate) rules: Option<Vec<Quorum>>,
    /// Who is to lead next, for a moment after a planned end.
    pub(crate) successor: Option<String>,
    /// Where the log ended then, if the server ended in order: whoever has more than that has everything.
    pub(crate) handed: Option<u64>,
}

const SYSTEM_ID: &str = "postgres.windlass.dev/system-id";
const LEADER: &str = "postgres.windlass.dev/last-primary";
const RULES: &str = "postgres.windlass.dev/quorum";
const SUCCESSOR: &str = "postgres.windlass.dev/successor";
const HANDED: &str = "postgres.windlass.dev/handed-over-at";

impl Memory {
    /// Reads it from the marks of the Lease. What cannot be read is not known.
    pub(crate) fn read(marks: &Marks) -> Self {
        let text = |key: &str| marks.get(key).filter(|text| !text.is_empty()).cloned();
        Self {
            system_id: text(SYSTEM_ID),
            leader: text(LEADER),
            rules: text(RULES).and_then(|text| serde_json::from_str(&text).ok()),
            successor: text(SUCCESSOR),
            handed: text(HANDED).and_then(|text| text.parse().ok()),
        }
    }

    /// Writes it as marks.
    pub(crate) fn marks(&self) -> Marks {
        let rules = self.rules.as_ref().and_then(|rules| serde_json::to_string(rules).ok());
        let all = [
            (SYSTEM_ID, self.system_id.clone()),
            (LEADER, self.leader.clone()),
            (RULES, rules),
            (SUCCESSOR, self.successor.clone()),
            (HANDED, self.handed.map(|lsn| lsn.to_string())),
        ];
        all.into_iter().map(|(key, value)| (key.to_owned(), value.unwrap_or_default())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_it_was_written() {
        let rule = Quorum { need: 1, of: BTreeSet::from(["a".to_owned(), "b".to_owned()]) };
        let memories = [
            Memory::default(),
            Memory { system_id: Some("7".into()), leader: Some("a".into()), rules: Some(vec![]), ..Memory::default() },
            Memory { rules: Some(vec![rule]), successor: Some("b".into()), handed: Some(7), ..Memory::default() },
        ];
        for memory in memories {
            assert_eq!(Memory::read(&memory.marks()), memory);
        }
    }

    #[test]
    fn enough_voters_are_seen_when_every_acknowledgement_is_among_them() {
        let rule = |need, of: &[&str]| Quorum { need, of: of.iter().map(|name| (*name).to_owned()).collect() }.to_see();
        assert_eq!((rule(1, &["b", "c"]), rule(2, &["b", "c"]), rule(1, &["b", "c", "d", "e"])), (2, 1, 4));
    }

    #[test]
    fn a_later_timeline_goes_further_than_any_position() {
        let at = |timeline, lsn| Position { timeline, lsn };
        assert!(at(2, 1) > at(1, 9) && at(1, 9) > at(1, 8));
    }
}
