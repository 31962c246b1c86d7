//! The OpenAPI definitions of the built-in kinds: kept as text, parsed one at a time.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use crate::node::Node;

static COMPRESSED: &[u8] = include_bytes!("../data/definitions.zst");

/// A bound for the decompressed table; the real one is a third of it.
const TEXT_BYTES_MAX: usize = 1 << 20;

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    let text = decompress(COMPRESSED, TEXT_BYTES_MAX);
    let entries: Vec<Entry> = text
        .lines()
        .map(|line| {
            let (name, text) = line.split_once('\t').expect("a definition is a name, a tab and a schema");
            Entry { name, text, node: OnceLock::new() }
        })
        .collect();
    let by_name = entries.iter().enumerate().map(|(index, entry)| (entry.name, index)).collect();
    Definitions { entries, by_name }
});

struct Definitions {
    entries: Vec<Entry>,
    by_name: HashMap<&'static str, usize>,
}

struct Entry {
    name: &'static str,
    text: &'static str,
    node: OnceLock<Arc<Node>>,
}

/// The OpenAPI v3 definition `name` as JSON text, without prose. References read `#/components/schemas/NAME`.
pub fn definition(name: &str) -> Option<&'static str> {
    let definitions = &*DEFINITIONS;
    definitions.by_name.get(name).map(|index| definitions.entries[*index].text)
}

/// The names of all definitions, in order.
pub fn definitions() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.entries.iter().map(|entry| entry.name)
}

/// The given definitions and all that they refer to, directly or not: what a document needs to be complete.
pub fn references<'a>(roots: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'static str> {
    const PREFIX: &str = "\"#/components/schemas/";
    let definitions = &*DEFINITIONS;
    let mut pending: Vec<usize> = roots.into_iter().filter_map(|name| definitions.by_name.get(name).copied()).collect();
    let mut found = BTreeSet::new();
    while let Some(index) = pending.pop() {
        let entry = &definitions.entries[index];
        if found.insert(entry.name) {
            let names = entry.text.split(PREFIX).skip(1).filter_map(|rest| rest.split_once('"'));
            pending.extend(names.filter_map(|(name, _)| definitions.by_name.get(name).copied()));
        }
    }
    found
}

/// The parsed definition `name`.
pub(crate) fn node(name: &str) -> Option<&'static Arc<Node>> {
    let definitions = &*DEFINITIONS;
    let entry = &definitions.entries[*definitions.by_name.get(name)?];
    Some(
        entry.node.get_or_init(|| Arc::new(serde_json::from_str(entry.text).expect("generated definitions are valid"))),
    )
}

/// The text of a generated table. It lives as long as the process, as every table does.
pub(crate) fn decompress(compressed: &[u8], bytes_max: usize) -> &'static str {
    let bytes = zstd::bulk::decompress(compressed, bytes_max).expect("generated tables are valid zstd");
    String::leak(String::from_utf8(bytes).expect("generated tables are UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_definition() {
        let all: BTreeSet<_> = definitions().collect();
        assert_eq!(references(all.iter().copied()), all);
        for name in definitions() {
            let dangling = definition(name).unwrap().split("#/components/schemas/").skip(1);
            for target in dangling.filter_map(|rest| rest.split_once('"')) {
                assert!(definition(target.0).is_some(), "{name} refers to {}", target.0);
            }
        }
    }

    #[test]
    fn recursive_definitions_are_parsed() {
        for name in definitions() {
            assert!(node(name).is_some());
        }
    }
}
