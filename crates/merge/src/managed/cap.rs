//! A bound on the entries of updaters, of which a busy object could collect any number.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::entry::{Entry, ManagerId, Managers, Operation};

/// How many updaters an object keeps apart.
const UPDATERS_MAX: usize = 10;

/// The manager under which the oldest updates are kept together.
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest updates of each version until there are no more than the limit.
pub(super) fn collapse_oldest(managers: &mut Managers) {
    let updaters = managers.iter().filter(|(id, _)| id.operation == Operation::Update);
    let mut updaters: Vec<_> = updaters.map(|(id, entry)| (seconds(entry), id.clone())).collect();
    updaters.sort();
    let mut left = updaters.len();
    let mut first_of_version: BTreeMap<Option<String>, ManagerId> = BTreeMap::new();
    for (_, id) in updaters {
        if left <= UPDATERS_MAX {
            break;
        }
        match first_of_version.get(&id.api_version) {
            Some(first) => {
                merge_into_ancient(managers, first, &id);
                left -= 1;
            }
            None => {
                first_of_version.insert(id.api_version.clone(), id);
            }
        }
    }
}

fn merge_into_ancient(managers: &mut Managers, first: &ManagerId, id: &ManagerId) {
    let Some(mut entry) = managers.remove(id) else { return };
    let ancient = ManagerId { name: ANCIENT.to_owned(), subresource: String::new(), ..id.clone() };
    let kept = match managers.remove(&ancient) {
        Some(kept) => Some(kept),
        None => managers.remove(first),
    };
    if let Some(kept) = kept {
        entry.fields.absorb(kept.fields);
    }
    let merged = Entry { manager: ANCIENT.to_owned(), subresource: String::new(), ..entry };
    managers.insert(ancient, merged);
}

fn seconds(entry: &Entry) -> i64 {
    entry.time.map_or(0, Timestamp::as_second)
}
