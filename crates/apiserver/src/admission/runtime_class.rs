//! What a Pod gets from the runtime class that it names: overhead, a place to run.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_store::Store;

use super::{Operation, Review, stored};
use crate::ApiError;

const CLASSES: &str = "/node.k8s.io/runtimeclasses/";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Class {
    overhead: Overhead,
    scheduling: Scheduling,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Overhead {
    pod_fixed: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Scheduling {
    node_selector: Map<String, Value>,
    tolerations: Vec<Value>,
}

/// Completes a new Pod by its runtime class.
pub(super) fn resolve(store: &Store, review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is(Operation::Create, "", "pods") || !review.object["spec"].is_object() {
        return Ok(());
    }
    let spec = &review.object["spec"];
    let Some(name) = spec["runtimeClassName"].as_str().filter(|name| !name.is_empty()) else {
        return match spec["overhead"].as_object().is_some_and(|overhead| !overhead.is_empty()) {
            false => Ok(()),
            true => {
                Err(review.refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
            }
        };
    };
    let class: Option<Class> = stored(store, &format!("{CLASSES}{name}"));
    let class = class.ok_or_else(|| review.refuse(format!("pod rejected: RuntimeClass {name:?} not found")))?;
    let completed = complete(spec, class).map_err(|why| review.refuse(format!("pod rejected: {why}")))?;
    review.object["spec"] = completed;
    Ok(())
}

fn complete(spec: &Value, class: Class) -> Result<Value, String> {
    let mut spec = spec.clone();
    match class.overhead.pod_fixed {
        Some(fixed) if spec["overhead"].is_null() || spec["overhead"] == fixed => spec["overhead"] = fixed,
        None if spec["overhead"].is_null() => {}
        _ => return Err("Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned()),
    }
    for (label, value) in class.scheduling.node_selector {
        match &spec["nodeSelector"][&label] {
            Value::Null => spec["nodeSelector"][&label] = value,
            known if *known == value => {}
            known => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{label}] = {}; pod.spec.nodeSelector[{label}] = {}",
                    value.as_str().unwrap_or_default(),
                    known.as_str().unwrap_or_default(),
                ));
            }
        }
    }
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    if let Value::Array(tolerations) = &mut spec["tolerations"] {
        let missing = class.scheduling.tolerations.into_iter().filter(|wanted| !tolerations.contains(wanted));
        let missing: Vec<Value> = missing.collect();
        tolerations.extend(missing);
        if tolerations.is_empty() {
            spec.as_object_mut().expect("a spec is a map").remove("tolerations");
        }
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use windlass_store::Write;

    #[tokio::test]
    async fn pods_get_what_their_class_says_or_are_refused() {
        let store = Store::in_memory();
        let toleration = json!({"key": "sandbox", "operator": "Exists"});
        let class = json!({
            "metadata": {"name": "sandbox"}, "handler": "sandbox",
            "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {"nodeSelector": {"runtime": "sandbox"}, "tolerations": [toleration]},
        });
        store.commit(vec![Write::create(format!("{CLASSES}sandbox"), class.to_string())]).await.unwrap();
        let user = User::master("test");
        let admit = |spec: Value| {
            let mut review = creation(&user, "", "pods", "red", json!({"spec": spec}));
            resolve(&store, &mut review).map(|()| review.object["spec"].clone()).map_err(|error| error.message)
        };
        assert_eq!(admit(json!({})), Ok(json!({})));
        let expected = json!({
            "runtimeClassName": "sandbox", "overhead": {"cpu": "10m"}, "nodeSelector": {"runtime": "sandbox"},
            "tolerations": [toleration],
        });
        assert_eq!(admit(json!({"runtimeClassName": "sandbox"})), Ok(expected));
        for (spec, expected) in [
            (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
            (json!({"overhead": {"cpu": "1"}}), "without corresponding RuntimeClass"),
            (json!({"runtimeClassName": "sandbox", "overhead": {"cpu": "1"}}), "Overhead doesn't match"),
            (json!({"runtimeClassName": "sandbox", "nodeSelector": {"runtime": "x"}}), "conflict: "),
        ] {
            let refused = admit(spec).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
