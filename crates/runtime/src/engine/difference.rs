//! What an apply would change, told from the managed fields of the live object: no schema is needed, since they say
//! which lists are keyed, and which fields this operator applied before.

use std::fmt;

use serde_json::{Map, Value};

/// A text longer than this is not repeated to people.
const SHOWN_CHARS_MAX: usize = 40;
/// More differences than this are not listed to people.
const SHOWN_MAX: usize = 4;

/// One field that is not as wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    path: String,
    live: Option<Value>,
    wanted: Option<Value>,
    /// Whether somebody else set it since this operator did.
    pub(crate) taken: bool,
}

/// All that an apply would change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Differences {
    pub(crate) fields: Vec<Difference>,
    /// Whether a field is as wanted, but not owned by this operator yet.
    pub(crate) unowned: bool,
}

impl Differences {
    /// Compares what is wanted with a live object that was applied by `manager`, if at all.
    pub(crate) fn between(wanted: &Value, live: &Value, manager: &str) -> Self {
        let nothing = Value::Object(Map::new());
        let owned = applied_fields(live, manager).unwrap_or(&nothing);
        let mut differences = Self::default();
        for (key, value) in wanted.as_object().into_iter().flatten() {
            if key == "apiVersion" || key == "kind" {
                continue;
            }
            let (owned, live) = (owned.get(format!("f:{key}")), live.get(key));
            differences.compare(owned, value, live, &format!(".{key}"));
        }
        for key in owned.as_object().into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("f:")) {
            if wanted.get(key).is_none() {
                differences.add(format!(".{key}"), live.get(key), None);
            }
        }
        differences
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && !self.unowned
    }

    /// The differences in words. `secret` hides the values.
    pub(crate) fn describe(&self, secret: bool) -> String {
        let describe = |difference: &Difference| if secret { difference.name() } else { difference.to_string() };
        let mut words: Vec<_> = self.fields.iter().take(SHOWN_MAX).map(describe).collect();
        if self.fields.len() > SHOWN_MAX {
            words.push(format!("and {} more", self.fields.len() - SHOWN_MAX));
        }
        words.join(", ")
    }

    fn compare(&mut self, owned: Option<&Value>, wanted: &Value, live: Option<&Value>, path: &str) {
        // Name and namespace identify the object; nobody owns them.
        if path == ".metadata.name" || path == ".metadata.namespace" {
            return;
        }
        let Some(owned) = owned.and_then(Value::as_object) else { return self.compare_unowned(wanted, live, path) };
        let Some(live) = live else { return self.add(path.into(), None, Some(wanted)) };
        if owned.is_empty() {
            if !is_covered(wanted, live) {
                self.add(path.into(), Some(live), Some(wanted));
            }
            return;
        }
        match (wanted, live) {
            (Value::Object(wanted), Value::Object(live)) => self.compare_maps(owned, wanted, live, path),
            (Value::Array(wanted), Value::Array(live)) => self.compare_lists(owned, wanted, live, path),
            _ => self.add(path.into(), Some(live), Some(wanted)),
        }
    }

    fn compare_maps(
        &mut self,
        owned: &Map<String, Value>,
        wanted: &Map<String, Value>,
        live: &Map<String, Value>,
        path: &str,
    ) {
        for (key, value) in wanted {
            self.compare(owned.get(&format!("f:{key}")), value, live.get(key), &format!("{path}.{key}"));
        }
        for key in owned.keys().filter_map(|key| key.strip_prefix("f:")) {
            if !wanted.contains_key(key) {
                self.add(format!("{path}.{key}"), live.get(key), None);
            }
        }
    }

    fn compare_lists(&mut self, owned: &Map<String, Value>, wanted: &[Value], live: &[Value], path: &str) {
        let members: Vec<(Member, &Value)> =
            owned.iter().filter_map(|(key, value)| Some((Member::parse(key)?, value))).collect();
        for item in wanted {
            let member = members.iter().find(|(member, _)| member.fits(item));
            let present = match member {
                Some((member, _)) => live.iter().find(|live| member.is(live)),
                None => live.iter().find(|live| is_covered(item, live)),
            };
            let title = member.map_or_else(|| "new".to_owned(), |(member, _)| member.title());
            self.compare(member.map(|(_, owned)| *owned), item, present, &format!("{path}[{title}]"));
        }
        for (member, _) in &members {
            if !wanted.iter().any(|item| member.fits(item)) {
                self.add(format!("{path}[{}]", member.title()), live.iter().find(|live| member.is(live)), None);
            }
        }
    }

    /// A field that this operator does not own: somebody took it, or it is wanted for the first time.
    fn compare_unowned(&mut self, wanted: &Value, live: Option<&Value>, path: &str) {
        if let (Value::Object(wanted), Some(Value::Object(live))) = (wanted, live) {
            self.unowned = true;
            for (key, value) in wanted {
                self.compare(None, value, live.get(key), &format!("{path}.{key}"));
            }
            return;
        }
        match live {
            Some(live) if is_covered(wanted, live) => self.unowned = true,
            _ => {
                self.add(path.into(), live, Some(wanted));
                if let Some(difference) = self.fields.last_mut() {
                    difference.taken = live.is_some();
                }
            }
        }
    }

    fn add(&mut self, path: String, live: Option<&Value>, wanted: Option<&Value>) {
        let path = path.trim_start_matches('.').to_owned();
        self.fields.push(Difference { path, live: live.cloned(), wanted: wanted.cloned(), taken: false });
    }
}

/// The fields that `manager` applied to the object itself, not to a subresource.
fn applied_fields<'a>(live: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let is_ours = |entry: &&Value| {
        let subresource = entry["subresource"].as_str().unwrap_or_default();
        entry["manager"] == manager && entry["operation"] == "Apply" && subresource.is_empty()
    };
    entries.iter().find(is_ours).map(|entry| &entry["fieldsV1"])
}

/// A member of a list, as managed fields name it.
enum Member {
    Keys(Map<String, Value>),
    Value(Value),
}

impl Member {
    fn parse(key: &str) -> Option<Self> {
        if let Some(keys) = key.strip_prefix("k:") {
            return serde_json::from_str(keys).ok().map(Self::Keys);
        }
        serde_json::from_str(key.strip_prefix("v:")?).ok().map(Self::Value)
    }

    /// Whether a wanted item is this member; a key that has a default may be left out of it.
    fn fits(&self, item: &Value) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value)),
            Self::Value(value) => value == item,
        }
    }

    fn is(&self, live: &Value) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().all(|(key, value)| live.get(key) == Some(value)),
            Self::Value(value) => value == live,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Keys(keys) => keys.values().map(shown).collect::<Vec<_>>().join(","),
            Self::Value(value) => shown(value),
        }
    }
}

/// Whether `live` says all that `wanted` says; the server may have filled in more.
fn is_covered(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| is_covered(value, live)))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| is_covered(wanted, live))
        }
        (Value::Number(wanted), Value::Number(live)) => wanted.as_f64() == live.as_f64(),
        _ => wanted == live,
    }
}

impl Difference {
    fn name(&self) -> String {
        self.path.clone()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |value: &Value| !value.is_object() && !value.is_array();
        match (&self.live, &self.wanted) {
            (_, None) => write!(f, "{} removed", self.path),
            (Some(live), Some(wanted)) if is_plain(live) && is_plain(wanted) => {
                write!(f, "{} from {} to {}", self.path, shown(live), shown(wanted))
            }
            (None, Some(wanted)) if is_plain(wanted) => write!(f, "{} to {}", self.path, shown(wanted)),
            _ => f.write_str(&self.path),
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text;
    }
    text.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "c", "namespace": "a", "labels": {"app": "c"}},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "c"}},
                "template": {"spec": {"containers": [
                    {"name": "c", "image": "c:1", "args": ["-v"], "ports": [{"containerPort": 11211}]}
                ]}}
            }
        })
    }

    /// What the server holds after `wanted` was applied: defaults filled in, managed fields kept.
    fn live() -> Value {
        let mut live = wanted();
        live["spec"]["strategy"] = json!({"type": "RollingUpdate"});
        live["spec"]["template"]["spec"]["restartPolicy"] = "Always".into();
        live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP".into();
        live["status"] = json!({"replicas": 3});
        live["metadata"]["managedFields"] = json!([
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "op", "operation": "Apply", "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:selector": {},
                    "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                        ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                        "f:ports": {"k:{\"containerPort\":11211,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}
                    }}}}
                }
            }}
        ]);
        live
    }

    fn check(change: impl FnOnce(&mut Value, &mut Value), expected: &str) {
        let (mut wanted, mut live) = (wanted(), live());
        change(&mut wanted, &mut live);
        let differences = Differences::between(&wanted, &live, "op");
        assert_eq!(differences.describe(false), expected);
        assert_eq!(differences.fields.is_empty(), expected.is_empty());
    }

    #[test]
    fn what_was_applied_is_not_applied_again() {
        assert!(Differences::between(&wanted(), &live(), "op").is_empty());
    }

    #[test]
    fn what_differs_is_named() {
        let container = "/spec/template/spec/containers/0";
        let owned = "/metadata/managedFields/1/fieldsV1";
        check(|_, live| live["spec"]["replicas"] = 5.into(), "spec.replicas from 5 to 3");
        check(|wanted, _| wanted["spec"]["replicas"] = 4.into(), "spec.replicas from 3 to 4");
        check(
            |_, live| live.pointer_mut(container).unwrap()["image"] = "c:2".into(),
            "spec.template.spec.containers[c].image from c:2 to c:1",
        );
        check(|wanted, _| wanted["spec"]["paused"] = true.into(), "spec.paused to true");
        check(
            |wanted, _| drop(wanted["metadata"]["labels"].as_object_mut().unwrap().remove("app")),
            "metadata.labels.app removed",
        );
        check(
            |wanted, _| {
                wanted.pointer_mut("/spec/template/spec/containers").unwrap().as_array_mut().unwrap().clear();
            },
            "spec.template.spec.containers[c] removed",
        );
        check(
            |wanted, _| {
                let more = json!({"name": "d", "image": "d:1"});
                wanted.pointer_mut("/spec/template/spec/containers").unwrap().as_array_mut().unwrap().push(more);
            },
            "spec.template.spec.containers[new]",
        );
        check(
            |_, live| {
                live.pointer_mut(owned).unwrap()["f:spec"].as_object_mut().unwrap().remove("f:replicas");
                live["spec"]["replicas"] = 9.into();
            },
            "spec.replicas from 9 to 3",
        );
    }

    #[test]
    fn a_field_that_somebody_took_is_told_from_one_that_is_wanted_anew() {
        let mut live = live();
        live["spec"]["replicas"] = 9.into();
        live.pointer_mut("/metadata/managedFields/1/fieldsV1/f:spec")
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("f:replicas");
        let differences = Differences::between(&wanted(), &live, "op");
        assert!(differences.fields[0].taken);
    }

    #[test]
    fn an_object_that_is_as_wanted_but_not_owned_is_applied_without_a_word() {
        let differences = Differences::between(&wanted(), &live(), "another");
        assert!(differences.unowned && differences.fields.is_empty(), "{differences:?}");
    }

    #[test]
    fn secrets_are_not_told() {
        let (wanted, live) = (json!({"data": {"password": "new"}}), json!({"data": {"password": "old"}}));
        assert_eq!(Differences::between(&wanted, &live, "op").describe(true), "data.password");
    }
}
