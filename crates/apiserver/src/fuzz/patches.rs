//! Patches of every form, and the sets of fields of server-side apply.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_merge::{
    FieldSet,
    managed::{self, Manager, Write},
    strategic,
};
use windlass_schema::{Kind, Schema, builtin};

use super::{line, objects, sample::Source};
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

/// A value and a merge patch, on a line each; or an object of a kind and a patch that fits it.
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
            (target, source.value(&kind.schema), Some(kind))
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
    // What became a list need not be fit to be merged into it, and loses what it has twice when it is.
    let Ok(merged) = strategic::apply(&merged, patch, shape) else { return };
    let again = strategic::apply(&merged, patch, shape);
    // Directives may ask for what is no longer there, or take away what they have put there; an item whose key is null is
    // stored without one and never found again.
    let text = patch.to_string();
    if !text.contains('$') && !text.contains("null") {
        assert_eq!(again, Ok(merged), "what is merged is merged");
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
        // An object that nobody owns anything of counts as one to which nobody applied yet.
        if entries.is_some() {
            assert_eq!(again.ok().as_ref(), Some(&result), "what is applied is applied");
        }
        let decoded = managed::decode(entries).expect("what was written can be read");
        assert_eq!(Some(&managed::encode(decoded)), entries.or(Some(&json!([]))));
        live = result;
    }
    let mut new = configurations[0].clone();
    let _ = managed::update(&write("carol"), Some(&live), &mut new);
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
