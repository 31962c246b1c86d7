//! What the user of a scenario wants: objects that are theirs.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_merge::merge_patch;

use super::canary::SECRETS;

/// What the keys of namespaces begin with.
const NAMESPACES: &str = "/core/namespaces/";
/// How many parts the key of an object has that lives in a namespace: nothing, group, kind, namespace and name.
const NAMESPACED_PARTS: usize = 5;

/// The user's objects, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    wanted: Vec<(String, Value)>,
    deleted: BTreeSet<String>,
    /// All that was ever written for all to see.
    open: String,
}

impl Wishes {
    pub(crate) fn create(&mut self, key: String, object: Value) {
        self.deleted.remove(&key);
        self.write(&key, &object);
        self.wanted.push((key, object));
    }

    /// What was ever written for all to see, as JSON.
    pub(crate) fn open(&self) -> &str {
        &self.open
    }

    fn write(&mut self, key: &str, value: &Value) {
        if !key.starts_with(SECRETS) {
            self.open.push_str(&value.to_string());
        }
    }

    pub(crate) fn change(&mut self, key: &str, patch: &Value) {
        self.write(key, patch);
        if let Some((_, object)) = self.wanted.iter_mut().find(|(wanted, _)| wanted == key) {
            merge_patch(object, patch);
        }
    }

    pub(crate) fn set_spec(&mut self, key: &str, spec: &Value) {
        self.write(key, spec);
        if let Some((_, object)) = self.wanted.iter_mut().find(|(wanted, _)| wanted == key) {
            object["spec"] = spec.clone();
        }
    }

    /// The user deletes an object; with a namespace goes what is in it.
    pub(crate) fn delete(&mut self, key: &str) {
        let namespace = key.strip_prefix(NAMESPACES);
        let goes = |wanted: &str| {
            let parts: Vec<&str> = wanted.split('/').collect();
            wanted == key || (parts.len() == NAMESPACED_PARTS && namespace == Some(parts[3]))
        };
        self.deleted.extend(self.wanted.iter().filter(|(wanted, _)| goes(wanted)).map(|(wanted, _)| wanted.clone()));
        self.wanted.retain(|(wanted, _)| !goes(wanted));
        self.deleted.insert(key.to_owned());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, Value)> {
        self.wanted.iter()
    }

    pub(crate) fn deleted(&self) -> &BTreeSet<String> {
        &self.deleted
    }
}

/// Where `found` is not what was `wanted`: what the API and operators add is fine.
pub(crate) fn unlike(wanted: &Value, found: &Value, path: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let skipped = |name: &str| path.is_empty() && name == "status";
            wanted.iter().filter(|(name, _)| !skipped(name)).find_map(|(name, value)| {
                unlike(value, found.get(name).unwrap_or(&Value::Null), &format!("{path}/{name}"))
            })
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() <= found.len() => {
            wanted.iter().zip(found).find_map(|(wanted, found)| unlike(wanted, found, path))
        }
        (wanted, found) if wanted == found => None,
        // The API writes some values in other words, a `stringData` for instance.
        _ if path.starts_with("/stringData") => None,
        (wanted, found) => Some(format!("{path} is {found}, not {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_wants_follows_their_changes() {
        let mut wishes = Wishes::default();
        wishes.create("/a".into(), json!({"spec": {"size": 1, "on": true}}));
        wishes.change("/a", &json!({"spec": {"size": 2, "on": null}}));
        assert_eq!(wishes.iter().next(), Some(&("/a".to_owned(), json!({"spec": {"size": 2}}))));
        wishes.delete("/a");
        assert!(wishes.iter().next().is_none() && wishes.deleted().contains("/a"));
    }

    #[test]
    fn with_a_namespace_goes_what_is_in_it() {
        let mut wishes = Wishes::default();
        for key in ["/core/namespaces/n", "/core/configmaps/n/a", "/core/configmaps/m/n"] {
            wishes.create(key.into(), json!({}));
        }
        wishes.delete("/core/namespaces/n");
        assert_eq!(wishes.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["/core/configmaps/m/n"]);
        assert!(wishes.deleted().contains("/core/configmaps/n/a"));
    }

    #[test]
    fn additions_are_fine_and_changes_are_not() {
        let wanted = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"list": [1]}});
        let found = json!({"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"list": [1, 2]}, "status": {}});
        assert_eq!(unlike(&wanted, &found, ""), None);
        let found = json!({"metadata": {"labels": {}}, "spec": {"list": [1]}});
        assert_eq!(unlike(&wanted, &found, "").as_deref(), Some("/metadata/labels/a is null, not \"b\""));
    }
}
