//! Results of earlier runs: a page may be made of several, as all contenders take longer than a machine is quiet.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use super::contenders;
use super::phases::Measured;
use crate::workspace::target;

/// Remembers `new`, and gives it together with the last results of all others, in the order of a page.
pub(super) fn with_others(new: &[Measured]) -> Result<Vec<Measured>> {
    let path = place();
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut all: Vec<Measured> = serde_json::from_str(&text).unwrap_or_default();
    all.retain(|old| !new.iter().any(|it| id(it) == id(old)));
    all.extend(new.iter().cloned());
    all.sort_by_key(|it| (it.server, it.size, contenders::rank(&it.name)));
    fs::write(path, serde_json::to_string(&all)?)?;
    Ok(all)
}

fn id(it: &Measured) -> (super::Server, &str, usize) {
    (it.server, &it.name, it.size)
}

fn place() -> PathBuf {
    target().join("bench/operators/results.json")
}
