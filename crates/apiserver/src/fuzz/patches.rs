//! Patches of every form, and the sets of fields of server-side apply.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_merge::{
    FieldSet,
    managed::{self, Manager, Write},
    strategic,
};
use windlass_schema::{Kind, Schema, builtin};

use super::{directives, line, objects, sample::Source};
use crate::codec::{parse_json, parse_yaml};

/// A value and a JSON patch, on a line each.
pub(super) fn json_patch(bytes: &[u8]) {
    let (target, patch) = line(bytes);
    let (Ok(target), Ok(patch)) = (parse_json(target), parse_json(patch)) else { return };
    let mut patched = target.value.clone();
    match windlass_merge::json_patch(&mut patched, &patch.value) {
        Ok(()) => assert!(parse_json(patched.to_string().as_bytes()).is_ok(), "a patched object can be read"),
        Err(_) => assert_eq!(patched, target.value, "a patch that fails changes nothing"),
    }
}

/// A value and a merge patch, on a line each; or an object of a kind and a patch that fits it, or that was made from it.
pub(super) fn merge_patch(bytes: &[u8]) {
    let (target, patch, kind) = match bytes {
        [b'{', ..] => {
            let (target, patch) = line(bytes);
            let (Ok(target), Ok(patch)) = (parse_json(target), parse_json(patch)) else { return };
            (target.value, patch.value, builtin().by_kind("", "v1", "Pod"))
        }
        _ => {
            let mut source = Source::new(bytes);
            let kind = source.pick(builtin().kinds());
            let Some(target) = objects::readable(kind, &mut source) else { return };
            let patch = match source.value(&kind.schema) {
                // Hardly anything is left of what decides: the patch would say nothing.
                Value::Null => directives::patch(&mut source, &target, &kind.schema),
                patch => patch,
            };
            (target, patch, Some(kind))
        }
    };
    let mut merged = target.clone();
    windlass_merge::merge_patch(&mut merged, &patch);
    let mut again = merged.clone();
    windlass_merge::merge_patch(&mut again, &patch);
    assert_eq!(again, merged, "what is merged is merged");
    strategic_merge(&target, &patch, kind.map(|kind| &kind.schema));
}

fn strategic_merge(target: &Value, patch: &Value, shape: Option<&Schema>) {
    let Ok(merged) = strategic::apply(target, patch, shape) else { return };
    // The code of kube-apiserver, given the same patches, takes a list that was not there as it is: with items that are
    // there twice or lack their key, and with nulls in new items of another. The second time it merges into that, and
    // refuses what has no key.
    let Ok(merged) = strategic::apply(&merged, patch, shape) else { return };
    let again = strategic::apply(&merged, patch, shape);
    if !patch.to_string().contains('$') {
        assert_eq!(again, Ok(merged), "what is merged is merged");
    } else if let Ok(again) = again {
        // A directive may ask for what it took away, so it may be refused the next time.
        assert_eq!(again, merged, "what is merged is merged");
    }
}

/// Two configurations of one kind by two managers, on a live object that may have any managed fields.
pub(super) fn apply(bytes: &[u8]) {
    match bytes {
        [b'{', ..] | [b'a'..=b'z', ..] => {
            let mut documents = std::str::from_utf8(bytes).unwrap_or_default().split("\n---\n");
            let mut next = || documents.next().and_then(|text| parse_yaml(text.as_bytes()).ok());
            let (Some(live), Some(first)) = (next(), next()) else { return };
            let second = next().unwrap_or_else(|| first.clone());
            let kind = builtin().by_kind("", "v1", "Pod").expect("there are Pods");
            applied(kind, &live.value, &[first.value, second.value]);
        }
        _ => {
            let mut source = Source::new(bytes);
            let kind = source.pick(builtin().kinds());
            let Some(live) = objects::readable(kind, &mut source) else { return };
            let configurations = [source.value(&kind.schema), source.value(&kind.schema)];
            applied(kind, &live, &configurations);
        }
    }
}

fn applied(kind: &Kind, live: &Value, configurations: &[Value; 2]) {
    let version = kind.api_version();
    let write = |name| {
        let manager = Manager { name, api_version: &version, subresource: "", time: Timestamp::UNIX_EPOCH };
        Write::new(manager, Some(&kind.schema))
    };
    let mut live = live.clone();
    for (config, name) in configurations.iter().zip(["ann", "bob"]) {
        let mut config = config.clone();
        let Some(members) = config.as_object_mut() else { return };
        members.insert("apiVersion".to_owned(), version.as_str().into());
        if !members.get("metadata").is_some_and(Value::is_object) {
            members.insert("metadata".to_owned(), json!({"name": "a"}));
        }
        let _ = managed::apply(&write(name), Some(&live), &config, false);
        let Ok(result) = managed::apply(&write(name), Some(&live), &config, true) else { continue };
        let again = managed::apply(&write(name), Some(&result), &config, false);
        let entries = result.pointer("/metadata/managedFields");
        match entries {
            Some(_) => assert_eq!(again.ok().as_ref(), Some(&result), "what is applied is applied"),
            None => again_by_nobody(&write(name), &config, result.clone(), again.ok()),
        }
        let decoded = managed::decode(entries).expect("what was written can be read");
        assert_eq!(Some(&managed::encode(decoded)), entries.or(Some(&json!([]))));
        live = result;
    }
    let mut new = configurations[0].clone();
    let _ = managed::update(&write("carol"), Some(&live), &mut new);
}

/// Of an object that nobody owns anything of, kube-apiserver says that nobody applied it yet: the next time all that it
/// has belongs to `before-first-apply`, which changes nothing else and happens once.
fn again_by_nobody(write: &Write<'_, Schema>, config: &Value, mut result: Value, again: Option<Value>) {
    let mut again = again.expect("nobody can be in conflict");
    let third = managed::apply(write, Some(&again), config, false);
    assert_eq!(third.as_ref().ok(), Some(&again), "what is applied is applied");
    for object in [&mut again, &mut result] {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
        for entry in metadata.remove("managedFields").iter().flat_map(|entries| entries.as_array()).flatten() {
            assert_eq!(entry["manager"], "before-first-apply");
        }
    }
    assert_eq!(again, result, "only the owner is new");
}

/// Two sets in the FieldsV1 form, on a line each: they survive being written, and sets are sets.
pub(super) fn fields(bytes: &[u8]) {
    let (left, right) = line(bytes);
    let read = |text: &[u8]| FieldSet::from_fields_v1(&parse_json(text).ok()?.value).ok();
    let Some(left) = read(left) else { return };
    assert_eq!(FieldSet::from_fields_v1(&left.to_fields_v1()).as_ref(), Ok(&left));
    assert_eq!(left.paths().len(), left.len());
    assert!(left.paths().iter().all(|path| left.contains(path)));
    let Some(right) = read(right) else { return };
    let union = left.union(&right);
    assert_eq!(union, right.union(&left));
    assert_eq!(left.intersection(&right), right.intersection(&left));
    assert_eq!(union.len() + left.intersection(&right).len(), left.len() + right.len());
    assert_eq!(left.difference(&right).union(&left.intersection(&right)), left);
    assert!(left.recursive_difference(&left).is_empty());
}
