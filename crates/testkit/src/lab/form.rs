//! A state of the world in a form that can be compared: without names, identities and times that chance decides.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::gate::FOREIGN;
use super::judge::{Rules, Settled};

/// Metadata that says who and when, not what.
const IDENTITY: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// What the controllers of the cluster count in objects that an operator made.
const COUNTED: &str = "deployment.kubernetes.io/revision";
/// What stands for the part of a name that chance added.
const CHANCE: &str = "*#";

/// What the keys of Pods begin with.
const PODS: &str = "/core/pods/";
/// How many letters an identity has.
const UID_LENGTH: usize = 36;
/// How many digits the minutes since 1970 have at least.
const TIME_LENGTH_MIN: usize = 8;
/// What begins the name of the volume with a Pod's token; the rest is chance.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// What begins a certificate: each laboratory has its own authority.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The uids of objects whose names chance decided, by what is common of their keys.
pub(crate) type Kin = BTreeMap<String, BTreeSet<String>>;

/// Objects by key, comparable.
pub(crate) type Form = BTreeMap<String, Value>;

/// Where values differ from run to run even if nothing goes wrong: a key and the path of a field.
pub(crate) type Noise = BTreeSet<(String, String)>;

/// The comparable form of `objects`.
pub(crate) fn of(objects: &BTreeMap<String, Value>) -> Form {
    let names = Names::of(objects);
    let mut form = Form::new();
    let mut unnamed: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (key, object) in objects {
        let shown = names.object(object);
        match names.key(key, object) {
            Some(general) => unnamed.entry(general).or_default().push(shown),
            None => drop(form.insert(key.clone(), shown)),
        }
    }
    for (key, mut alike) in unnamed {
        alike.sort_by_key(Value::to_string);
        form.extend(alike.into_iter().enumerate().map(|(number, object)| (format!("{key}#{number}"), object)));
    }
    form
}

/// Whether the object `key` of a form is among those that the operator made.
pub(crate) fn is_made(key: &str, made: &BTreeSet<String>) -> bool {
    match key.split_once(CHANCE) {
        Some((name, _)) => made.iter().any(|made| made.starts_with(name)),
        None => made.contains(key),
    }
}

/// What of a state is the operator's doing: the resources, and what it wrote of the objects that it made.
pub(crate) fn view(state: &Settled, rules: &Rules) -> Form {
    let begins = |key: &str, prefixes: &[String]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    let mut view = Form::new();
    for (key, object) in &state.form {
        let mut object = object.clone();
        if !begins(key, &rules.own) {
            if !is_made(key, &state.made) || begins(key, &rules.kept) {
                continue;
            }
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                forget_annotation(meta, COUNTED);
            }
        }
        view.insert(key.clone(), object);
    }
    view
}

/// The first difference, as a sentence.
pub(crate) fn difference(expected: &Form, found: &Form, noise: &Noise) -> Option<String> {
    let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    keys.into_iter().find_map(|key| match (expected.get(key), found.get(key)) {
        (Some(_), None) => Some(format!("{key} is missing")),
        (None, Some(_)) => Some(format!("{key} should not be there")),
        (Some(expected), Some(found)) => {
            let mut different = Vec::new();
            compare(expected, found, "", &mut different);
            different.retain(|(path, _, _)| !noise.contains(&(key.clone(), path.clone())));
            let (path, expected, found) = different.into_iter().next()?;
            Some(format!("{key} has {found} at {path}, not {expected}"))
        }
        (None, None) => None,
    })
}

/// The places where two runs without faults differ.
pub(crate) fn noise(one: &Form, other: &Form) -> Noise {
    let mut noise = Noise::new();
    for (key, value) in one {
        let mut different = Vec::new();
        if let Some(other) = other.get(key) {
            compare(value, other, "", &mut different);
        }
        noise.extend(different.into_iter().map(|(path, _, _)| (key.clone(), path)));
    }
    noise
}

fn compare(expected: &Value, found: &Value, path: &str, different: &mut Vec<(String, String, String)>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for name in names {
                let (a, b) = (expected.get(name).unwrap_or(&Value::Null), found.get(name).unwrap_or(&Value::Null));
                compare(a, b, &format!("{path}/{name}"), different);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (a, b)) in expected.iter().zip(found).enumerate() {
                compare(a, b, &format!("{path}/{number}"), different);
            }
        }
        (expected, found) if expected == found => {}
        (expected, found) => different.push((path.to_owned(), expected.to_string(), found.to_string())),
    }
}

/// Names and identities that chance decided, and what stands for them.
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(objects: &BTreeMap<String, Value>) -> Self {
        let mut names = BTreeMap::new();
        for (key, object) in objects {
            let meta = &object["metadata"];
            let general = general_name(object);
            if let (Some(name), Some(general)) = (meta["name"].as_str(), &general) {
                names.insert(name.to_owned(), general.clone());
            }
            if let Some(base) = meta["generateName"].as_str() {
                names.insert(base.to_owned(), timeless(base));
            }
            let whose = general.map_or_else(|| key.clone(), |general| replace_name(key, &general));
            // The address of a Pod follows from who came before it.
            for address in key.starts_with(PODS).then(|| object["status"]["podIP"].as_str()).into_iter().flatten() {
                names.insert(address.to_owned(), format!("the address of {whose}"));
            }
            if let Some(uid) = meta["uid"].as_str() {
                names.insert(uid.to_owned(), format!("the uid of {whose}"));
            }
        }
        Self(names)
    }

    /// The key without what chance added to the name; `None` if chance added nothing.
    fn key(&self, key: &str, object: &Value) -> Option<String> {
        general_name(object).map(|general| replace_name(key, &general))
    }

    fn object(&self, object: &Value) -> Value {
        let generation = object["metadata"]["generation"].as_i64();
        let mut shown = self.value(object);
        if let Some(meta) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
            IDENTITY.iter().for_each(|field| drop(meta.remove(*field)));
            // What the plan itself wrote.
            forget_annotation(meta, FOREIGN);
        }
        if let Some(status) = shown.get_mut("status") {
            observed(status, generation);
            for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
                observed(condition, generation);
            }
        }
        shown
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), self.value(value))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::String(text) => self.text(text),
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> Value {
        if let Some(general) = self.0.get(text) {
            return Value::from(general.as_str());
        }
        if text.parse::<jiff::Timestamp>().is_ok() {
            return Value::from("a time");
        }
        for (begins, general) in [(TOKEN_VOLUME, "the volume of a token"), (CERTIFICATE, "a certificate")] {
            if text.starts_with(begins) {
                return Value::from(general);
            }
        }
        // What operators remember in annotations is often JSON.
        match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => self.value(&inner),
            _ => Value::from(text),
        }
    }
}

/// The name without what chance, an identity or a time added to it.
fn general_name(object: &Value) -> Option<String> {
    let meta = &object["metadata"];
    let name = meta["name"].as_str()?;
    let base = meta["generateName"].as_str().filter(|base| !base.is_empty());
    let base = base.or_else(|| name.split_at_checked(name.len().checked_sub(UID_LENGTH)?).and_then(before_uid));
    match base {
        Some(base) => Some(format!("{}*", timeless(base))),
        None => Some(timeless(name)).filter(|general| general != name),
    }
}

/// A name without the minute that a CronJob has put into it.
fn timeless(name: &str) -> String {
    let is_time = |part: &str| part.len() >= TIME_LENGTH_MIN && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split('-').map(|part| if is_time(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("-")
}

/// What stands before a uid.
fn before_uid<'a>((base, uid): (&'a str, &'a str)) -> Option<&'a str> {
    let dashes: Vec<usize> = uid.match_indices('-').map(|(place, _)| place).collect();
    let is_uid = dashes == [8, 13, 18, 23] && uid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (is_uid && !base.is_empty()).then_some(base)
}

/// The uids of objects that differ in nothing but chance, by what is common of their keys.
pub(crate) fn kin<'a>(objects: impl Iterator<Item = (&'a String, &'a Value)>) -> Kin {
    let mut kin = Kin::new();
    for (key, object) in objects {
        if let (Some(general), Some(uid)) = (general_name(object), object["metadata"]["uid"].as_str()) {
            kin.entry(replace_name(key, &general)).or_default().insert(uid.to_owned());
        }
    }
    kin
}

fn replace_name(key: &str, name: &str) -> String {
    let place = key.rsplit_once('/').map_or("", |(place, _)| place);
    format!("{place}/{name}")
}

fn forget_annotation(meta: &mut Map<String, Value>, name: &str) {
    let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove(name);
    if annotations.is_empty() {
        meta.remove("annotations");
    }
}

/// Whether the newest generation was seen is what counts, not its number.
fn observed(status: &mut Value, generation: Option<i64>) {
    if let Some(seen) = status.get_mut("observedGeneration") {
        *seen = Value::from(if seen.as_i64() == generation { "the newest" } else { "an old one" });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(objects: &[(&str, Value)]) -> Form {
        of(&objects.iter().map(|(key, object)| ((*key).to_owned(), object.clone())).collect())
    }

    #[test]
    fn names_identities_and_times_do_not_count() {
        let state = |uid: &str, pod: &str, time: &str| {
            form(&[
                (
                    "/a/owners/d/o",
                    json!({"metadata": {"name": "o", "uid": uid}, "status": {"since": time, "pods": [pod]}}),
                ),
                (
                    &format!("/core/pods/d/{pod}"),
                    json!({"metadata": {"name": pod, "generateName": "p-", "ownerReferences": [{"uid": uid}]}}),
                ),
            ])
        };
        let one = state("1", "p-x", "2026-01-01T00:00:00Z");
        assert_eq!(one, state("2", "p-y", "2026-01-01T00:10:00Z"));
        assert!(one.contains_key("/core/pods/d/p-*#0"), "{one:?}");
    }

    #[test]
    fn names_of_identities_and_times_and_addresses_do_not_count() {
        let state = |uid: &str, minute: &str, address: &str| {
            form(&[
                (&format!("/core/persistentvolumes/pvc-{uid}"), json!({"metadata": {"name": format!("pvc-{uid}")}})),
                (
                    &format!("/batch/jobs/d/c-{minute}"),
                    json!({"metadata": {"name": format!("c-{minute}")}, "ca": format!("{CERTIFICATE}{uid}")}),
                ),
                (
                    &format!("/core/pods/d/c-{minute}-x"),
                    json!({"metadata": {"name": format!("c-{minute}-x"), "generateName": format!("c-{minute}-")}}),
                ),
                ("/core/pods/d/p", json!({"metadata": {"name": "p"}, "status": {"podIP": address}})),
                ("/core/endpoints/d/s", json!({"metadata": {"name": "s"}, "ips": [address]})),
            ])
        };
        let one = state("00000000-0000-4000-8000-00000000000a", "29000001", "10.0.0.1");
        assert_eq!(one, state("10000000-0000-4000-8000-00000000000b", "29000002", "10.0.0.2"));
        assert!(one.contains_key("/batch/jobs/d/c-*#0") && one.contains_key("/core/pods/d/c-*-*#0"), "{one:?}");
        assert!(one.contains_key("/core/persistentvolumes/pvc-*#0"));
    }

    #[test]
    fn the_first_difference_is_told() {
        let state = |size: u32| form(&[("/a/b/c/d", json!({"spec": {"size": size, "noise": size}}))]);
        let (one, other) = (state(1), state(2));
        let quiet = Noise::from([("/a/b/c/d".to_owned(), "/spec/noise".to_owned())]);
        assert_eq!(difference(&one, &other, &quiet).as_deref(), Some("/a/b/c/d has 2 at /spec/size, not 1"));
        assert_eq!(difference(&one, &Form::new(), &quiet).as_deref(), Some("/a/b/c/d is missing"));
        assert_eq!(difference(&one, &one, &Noise::new()), None);
    }
}
