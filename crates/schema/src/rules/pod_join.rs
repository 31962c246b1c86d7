//! What may join a Pod that runs.

use serde_json::Value;

use super::cursor::At;
use super::{metadata, pod, pod_notes};
use crate::{FieldError, Kind};

/// Checks a Pod of which only the ephemeral containers were written, against the `old` one: they come, but stay as they are.
pub fn validate_pod_joining(kind: &Kind, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata::validate_metadata(kind, new, Some(old));
    let (new, old) = (At::root(new), At::root(old));
    pod::sound(&new, &mut errors);
    pod_notes::kept(&new.at("metadata.annotations"), &old.at("metadata.annotations"), &mut errors);
    let list = new.at("spec.ephemeralContainers");
    for before in old.at("spec.ephemeralContainers").items() {
        let name = before.member("name");
        let changed = match list.items().find(|container| container.member("name").text() == name.text()) {
            None => "removed",
            Some(now) if now.value != before.value => "changed",
            Some(_) => continue,
        };
        let name = crate::field::quote(name.text());
        errors.push(list.forbidden(format!("existing ephemeral containers {name} may not be {changed}")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::tests::{POD, pod, prepared};

    #[test]
    fn containers_come_and_stay() {
        let with = |late: Value| {
            prepared(POD, pod(json!({"containers": [{"name": "a", "image": "a"}], "ephemeralContainers": late})))
        };
        let check = |old: Value, new: Value, expect: &[&str]| {
            let kind = crate::builtin().by_kind("", "v1", "Pod").unwrap();
            let errors: Vec<String> =
                validate_pod_joining(kind, &with(new), &with(old)).iter().map(ToString::to_string).collect();
            assert_eq!(errors, expect);
        };
        let one = |name: &str, image: &str| json!({"name": name, "image": image});
        check(json!([one("d", "d")]), json!([one("e", "e"), one("d", "d")]), &[]);
        let told = |how: &str| {
            format!("spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be {how}")
        };
        check(json!([one("d", "d")]), json!([]), &[&told("removed")]);
        check(json!([one("d", "d")]), json!([one("d", "e")]), &[&told("changed")]);
        check(json!([]), json!([one("a", "d")]), &["spec.ephemeralContainers[0].name: Duplicate value: \"a\""]);
    }
}
