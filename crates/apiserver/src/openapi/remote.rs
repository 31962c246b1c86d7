//! What other servers say of their kinds, among what this one says of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::aggregation::Remote;

const REFERENCE: &str = "#/definitions/";
const KINDS: &str = "x-kubernetes-group-version-kind";

/// Adds the documents of other servers to the list of documents; theirs count for what they answer for.
pub(super) fn add_names(paths: &mut Map<String, Value>, remotes: &[Remote]) {
    for remote in remotes {
        let name = remote.document_name();
        if let Some(address) = remote.document(&name) {
            let entry = json!({"serverRelativeURL": address});
            paths.insert(name, entry);
        }
    }
}

/// Adds what other servers have at their paths to the one document of everything. Where two definitions have the same
/// name and say different things, the later one gets another name.
pub(super) fn add_paths(document: &mut Value, remotes: &[Remote]) {
    for description in remotes.iter().filter_map(|remote| remote.description.as_deref()) {
        let Some(definitions) = document["definitions"].as_object_mut() else { return };
        let renamed = add_definitions(definitions, &description.definitions);
        let Some(paths) = document["paths"].as_object_mut() else { return };
        for (path, item) in &description.paths {
            paths.entry(path.clone()).or_insert_with(|| with_names(item.clone(), &renamed));
        }
    }
}

/// Adds definitions and returns which of them have another name now.
fn add_definitions(known: &mut Map<String, Value>, more: &[(String, Value)]) -> BTreeMap<String, String> {
    let renamed = names(known, more);
    for (name, definition) in more {
        let name = renamed.get(name).unwrap_or(name);
        let definition = with_names(definition.clone(), &renamed);
        match known.get_mut(name) {
            Some(known) => add_kinds(known, &definition),
            None => drop(known.insert(name.clone(), definition)),
        }
    }
    renamed
}

/// The definitions of `more` that need another name, and that name. A definition whose references have other names
/// says something else than before, so that all are looked at again after a change; numbers only grow, which ends it.
fn names(known: &Map<String, Value>, more: &[(String, Value)]) -> BTreeMap<String, String> {
    let taken: BTreeSet<&str> = more.iter().map(|(name, _)| name.as_str()).collect();
    let (mut numbers, mut renamed) = (vec![1_u32; more.len()], BTreeMap::new());
    let mut is_settled = false;
    while !is_settled {
        is_settled = true;
        for ((name, definition), number) in more.iter().zip(&mut numbers) {
            let wanted = with_names(definition.clone(), &renamed);
            let fits = |candidate: &str| {
                (candidate == name || !taken.contains(candidate))
                    && known.get(candidate).is_none_or(|known| is_same(known, &wanted))
            };
            while !fits(renamed.get(name).unwrap_or(name)) {
                *number += 1;
                renamed.insert(name.clone(), format!("{name}_v{number}"));
                is_settled = false;
            }
        }
    }
    renamed
}

/// Whether two definitions say the same, whatever kinds they are of.
fn is_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one == other };
    let count = |members: &Map<String, Value>| members.len() - usize::from(members.contains_key(KINDS));
    count(one) == count(other)
        && one.iter().all(|(name, value)| name == KINDS || other.get(name).is_some_and(|other| other == value))
}

/// Adds the kinds that a definition is of.
fn add_kinds(known: &mut Value, definition: &Value) {
    let Some(more) = definition[KINDS].as_array() else { return };
    let Some(known) = known.as_object_mut() else { return };
    let Some(kinds) = known.entry(KINDS).or_insert_with(|| json!([])).as_array_mut() else { return };
    for kind in more {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
}

/// The value with references by the names of today.
fn with_names(mut value: Value, renamed: &BTreeMap<String, String>) -> Value {
    if !renamed.is_empty() {
        rename(&mut value, renamed);
    }
    value
}

fn rename(value: &mut Value, renamed: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(|name| name.as_str()?.strip_prefix(REFERENCE));
            if let Some(name) = name.and_then(|name| renamed.get(name)) {
                members.insert("$ref".to_owned(), format!("{REFERENCE}{name}").into());
            }
            members.values_mut().for_each(|member| rename(member, renamed));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_differ_get_another_name() {
        let kind = |group: &str| json!([{"group": group, "kind": "Options", "version": "v1"}]);
        let mut known = json!({
            "Meta": {"type": "object"}, "Options": {"type": "object", KINDS: kind("")}, "Name": {"type": "string"},
        });
        let more = [
            ("Meta".to_owned(), json!({"type": "object", "description": "prose"})),
            ("Thing".to_owned(), json!({"properties": {"metadata": {"$ref": "#/definitions/Meta"}}})),
            ("Options".to_owned(), json!({"type": "object", KINDS: kind("a")})),
            ("Name".to_owned(), json!({"type": "string"})),
        ];
        let renamed = add_definitions(known.as_object_mut().unwrap(), &more);
        assert_eq!(renamed, BTreeMap::from([("Meta".to_owned(), "Meta_v2".to_owned())]));
        assert_eq!(known["Meta"], json!({"type": "object"}));
        assert_eq!(known["Thing"]["properties"]["metadata"]["$ref"], "#/definitions/Meta_v2");
        assert_eq!(known["Options"][KINDS].as_array().unwrap().len(), 2);
        // A second server that says the same shares the names.
        assert_eq!(add_definitions(known.as_object_mut().unwrap(), &more), renamed);
        assert_eq!(known.as_object().unwrap().len(), 5);
    }
}
