//! The number behind the name of a Pod's priority class.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_store::Store;

use super::{Operation, Review, all_stored, stored};
use crate::ApiError;
use crate::object::Object;

const CLASSES: &str = "/scheduling.k8s.io/priorityclasses/";
const PREEMPTION_DEFAULT: &str = "PreemptLowerPriority";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Class {
    metadata: Metadata,
    value: i64,
    global_default: bool,
    preemption_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

pub(super) fn resolve(store: &Store, review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.object["spec"].is_object() {
        return Ok(());
    }
    if review.is(Operation::Update, "", "pods") {
        keep(review);
    }
    if !review.is(Operation::Create, "", "pods") {
        return Ok(());
    }
    let spec = &review.object["spec"];
    let name = spec["priorityClassName"].as_str().unwrap_or_default();
    let class = if name.is_empty() {
        default_class(store)
    } else {
        let class = stored(store, &format!("{CLASSES}{name}"));
        class.ok_or_else(|| review.refuse(format!("no PriorityClass with name {name} was found")))?
    };
    let value = class.value;
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        return Err(review.refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; \
             priority admission controller computed {value} from the given PriorityClass name"
        )));
    }
    let policy = class.preemption_policy.unwrap_or_else(|| PREEMPTION_DEFAULT.to_owned());
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        return Err(review.refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    let spec = &mut review.object["spec"];
    if !class.metadata.name.is_empty() {
        spec["priorityClassName"] = json!(class.metadata.name);
    }
    spec["priority"] = json!(value);
    spec["preemptionPolicy"] = json!(policy);
    Ok(())
}

/// To leave out what a Pod got when it was made is to keep it.
fn keep(review: &mut Review<'_>) {
    for name in ["priority", "preemptionPolicy"] {
        let old = review.old["spec"][name].clone();
        if review.object["spec"][name].is_null() && !old.is_null() {
            review.object["spec"][name] = old;
        }
    }
}

/// Refuses a second class that is the default.
pub(super) fn check_class(store: &Store, review: &Review<'_>) -> Result<(), ApiError> {
    let concerned = [Operation::Create, Operation::Update]
        .iter()
        .any(|operation| review.is(*operation, "scheduling.k8s.io", "priorityclasses"));
    if !concerned || review.object["globalDefault"] != Value::Bool(true) {
        return Ok(());
    }
    let classes: Vec<Class> = all_stored(store, CLASSES);
    let other = classes.iter().find(|class| class.global_default && class.metadata.name != review.object.name());
    match other {
        None => Ok(()),
        Some(other) => Err(review.refuse(format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            other.metadata.name
        ))),
    }
}

/// The class of Pods that name none; without one, the priority is 0.
fn default_class(store: &Store) -> Class {
    let classes: Vec<Class> = all_stored(store, CLASSES);
    classes.into_iter().filter(|class| class.global_default).min_by_key(|class| class.value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use windlass_store::Write;

    async fn classes(default: bool) -> Store {
        let store = Store::in_memory();
        let class = |name: &str, value: i64, default: bool| {
            let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
            Write::create(format!("{CLASSES}{name}"), class.to_string())
        };
        store.commit(vec![class("high", 1000, false), class("usual", 7, default)]).await.unwrap();
        store
    }

    fn check(store: &Store, spec: Value, expected: Result<(i64, Option<&str>), &str>) {
        let user = User::master("test");
        let mut review = creation(&user, "", "pods", "red", json!({"spec": spec}));
        let outcome = resolve(store, &mut review).map(|()| {
            let spec = &review.object["spec"];
            (spec["priority"].as_i64().unwrap(), spec["priorityClassName"].as_str())
        });
        match (outcome, expected) {
            (Ok(outcome), Ok(expected)) => assert_eq!(outcome, expected),
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (outcome, expected) => panic!("{outcome:?}, expected {expected:?}"),
        }
    }

    #[tokio::test]
    async fn a_pod_gets_the_number_of_its_class() {
        let store = classes(false).await;
        check(&store, json!({}), Ok((0, None)));
        check(&store, json!({"priorityClassName": "high"}), Ok((1000, Some("high"))));
        check(&store, json!({"priorityClassName": "high", "priority": 1000}), Ok((1000, Some("high"))));
        check(&store, json!({"priorityClassName": "high", "priority": 1}), Err("must not be provided"));
        check(&store, json!({"priorityClassName": "none"}), Err("no PriorityClass with name none was found"));
        check(&classes(true).await, json!({}), Ok((7, Some("usual"))));
    }

    #[tokio::test]
    async fn a_changed_pod_keeps_its_number() {
        let (store, user) = (classes(false).await, User::master("test"));
        let mut review = creation(&user, "", "pods", "red", json!({"spec": {}}));
        review.operation = Operation::Update;
        review.old = json!({"spec": {"priority": 7}});
        resolve(&store, &mut review).unwrap();
        assert_eq!(review.object["spec"]["priority"], 7);
    }

    #[tokio::test]
    async fn only_one_class_is_the_default() {
        let user = User::master("test");
        let object = json!({"metadata": {"name": "new"}, "globalDefault": true});
        let review = creation(&user, "scheduling.k8s.io", "priorityclasses", "", object);
        assert!(check_class(&classes(false).await, &review).is_ok());
        assert!(check_class(&classes(true).await, &review).is_err());
    }
}
