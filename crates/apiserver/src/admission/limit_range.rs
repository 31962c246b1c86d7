//! LimitRanges: what containers get that ask for nothing, and how much they, their Pods and claims may ask for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_schema::{pod_resources, quantity::nanos};
use windlass_store::Store;

use super::{Operation, Review, all_stored};
use crate::ApiError;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Amounts by the name of their resource.
type Amounts = BTreeMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimitRange {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    limits: Vec<Limit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    r#type: String,
    default: Amounts,
    default_request: Amounts,
    min: Amounts,
    max: Amounts,
    max_limit_request_ratio: Amounts,
}

/// What a container, a Pod or a claim asks for.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Amounts,
    limits: Amounts,
}

/// Fills in what containers do not say.
pub(super) fn complete(store: &Store, review: &mut Review<'_>) {
    if !review.is(Operation::Create, "", "pods") {
        return;
    }
    for limit in limits(store, review.namespace).iter().filter(|limit| limit.r#type == "Container") {
        let mut notes = Vec::new();
        for (list, name) in [("containers", "container"), ("initContainers", "init container")] {
            for container in review.object["spec"][list].as_array_mut().into_iter().flatten() {
                notes.extend(fill(container, name, limit));
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            review.object["metadata"]["annotations"][ANNOTATION] = json!(note);
        }
    }
}

/// Refuses what asks for too much or too little.
pub(super) fn check(store: &Store, review: &Review<'_>) -> Result<(), ApiError> {
    let pod = review.is(Operation::Create, "", "pods") || review.is_resize();
    let claim = [Operation::Create, Operation::Update]
        .iter()
        .any(|operation| review.is(*operation, "", "persistentvolumeclaims"));
    if !pod && !claim {
        return Ok(());
    }
    let mut problems = Vec::new();
    for limit in limits(store, review.namespace) {
        match limit.r#type.as_str() {
            "Container" if pod => {
                for container in containers(&review.object) {
                    problems.extend(violations(&limit, &resources(container)));
                }
            }
            "Pod" if pod => problems.extend(violations(&limit, &pod_resources(&review.object))),
            "PersistentVolumeClaim" if claim => {
                problems.extend(claim_violations(&limit, &resources(&review.object["spec"])));
            }
            _ => {}
        }
    }
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(review.refuse(one)),
        many => Err(review.refuse(format!("[{}]", many.join(", ")))),
    }
}

fn limits(store: &Store, namespace: &str) -> Vec<Limit> {
    let ranges: Vec<LimitRange> = all_stored(store, &format!("/core/limitranges/{namespace}/"));
    ranges.into_iter().flat_map(|range| range.spec.limits).collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let list = |name: &str| pod["spec"][name].as_array().into_iter().flatten();
    list("containers").chain(list("initContainers"))
}

fn resources(owner: &Value) -> Resources {
    Resources::deserialize(&owner["resources"]).unwrap_or_default()
}

/// What was filled in, in words.
fn fill(container: &mut Value, what: &str, limit: &Limit) -> Vec<String> {
    let name = container["name"].as_str().unwrap_or_default().to_owned();
    let mut notes = Vec::new();
    for (field, word, defaults) in
        [("requests", "request", &limit.default_request), ("limits", "limit", &limit.default)]
    {
        let amounts = &container["resources"][field];
        let missing: Vec<(&String, &String)> =
            defaults.iter().filter(|(key, _)| amounts[key.as_str()].is_null()).collect();
        if missing.is_empty() {
            continue;
        }
        let keys: Vec<&str> = missing.iter().map(|(key, _)| key.as_str()).collect();
        notes.push(format!("{} {word} for {what} {name}", keys.join(", ")));
        for (key, amount) in missing {
            container["resources"][field][key] = json!(amount);
        }
    }
    notes
}

/// What a Pod asks for as a whole.
fn pod_resources(pod: &Value) -> Resources {
    let total = |field: &str| -> Amounts {
        let amounts = pod_resources::total(pod, field).into_iter();
        amounts.map(|(name, amount)| (name, amount.to_string())).collect()
    };
    Resources { requests: total("requests"), limits: total("limits") }
}

fn violations(limit: &Limit, asked: &Resources) -> Vec<String> {
    let min = limit.min.iter().filter_map(|(key, amount)| below(&limit.r#type, key, amount, asked));
    let max = limit.max.iter().filter_map(|(key, amount)| above(&limit.r#type, key, amount, asked));
    let ratios = &limit.max_limit_request_ratio;
    let ratio = ratios.iter().filter_map(|(key, amount)| over_ratio(&limit.r#type, key, amount, asked));
    min.chain(max).chain(ratio).collect()
}

/// Claims have no limits, only requests.
fn claim_violations(limit: &Limit, asked: &Resources) -> Vec<String> {
    let asked = Resources { requests: asked.requests.clone(), limits: asked.requests.clone() };
    let problems = violations(&Limit { max_limit_request_ratio: Amounts::new(), ..limit.copied() }, &asked);
    problems
        .into_iter()
        .map(|problem| problem.replace("No limit", "No request").replace("but limit", "but request"))
        .collect()
}

impl Limit {
    fn copied(&self) -> Limit {
        Limit { r#type: self.r#type.clone(), min: self.min.clone(), max: self.max.clone(), ..Limit::default() }
    }
}

fn below(kind: &str, key: &str, min: &str, asked: &Resources) -> Option<String> {
    let floor = nanos(min)?;
    let short =
        |amounts: &Amounts| amounts.get(key).filter(|amount| nanos(amount).is_some_and(|own| own < floor)).cloned();
    if !asked.requests.contains_key(key) {
        return Some(format!("minimum {key} usage per {kind} is {min}.  No request is specified"));
    }
    let problem =
        |word: &str, amount: String| format!("minimum {key} usage per {kind} is {min}, but {word} is {amount}");
    short(&asked.requests)
        .map(|amount| problem("request", amount))
        .or_else(|| short(&asked.limits).map(|amount| problem("limit", amount)))
}

fn above(kind: &str, key: &str, max: &str, asked: &Resources) -> Option<String> {
    let ceiling = nanos(max)?;
    let excess =
        |amounts: &Amounts| amounts.get(key).filter(|amount| nanos(amount).is_some_and(|own| own > ceiling)).cloned();
    if !asked.limits.contains_key(key) {
        return Some(format!("maximum {key} usage per {kind} is {max}.  No limit is specified"));
    }
    let problem =
        |word: &str, amount: String| format!("maximum {key} usage per {kind} is {max}, but {word} is {amount}");
    excess(&asked.limits)
        .map(|amount| problem("limit", amount))
        .or_else(|| excess(&asked.requests).map(|amount| problem("request", amount)))
}

fn over_ratio(kind: &str, key: &str, max: &str, asked: &Resources) -> Option<String> {
    let amount = |amounts: &Amounts| amounts.get(key).and_then(|amount| nanos(amount)).filter(|amount| *amount > 0);
    let missing = |word: &str| {
        format!("{key} max limit to request ratio per {kind} is {max}, but no {word} is specified or {word} is 0")
    };
    let Some(request) = amount(&asked.requests) else { return Some(missing("request")) };
    let Some(limit) = amount(&asked.limits) else { return Some(missing("limit")) };
    #[expect(clippy::cast_precision_loss, reason = "a ratio of amounts, shown with six digits")]
    let (ratio, ceiling) = (limit as f64 / request as f64, nanos(max)? as f64 / 1e9);
    (ratio > ceiling)
        .then(|| format!("{key} max limit to request ratio per {kind} is {max}, but provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;
    use crate::object::Object;
    use windlass_store::Write;

    async fn reviewed(limit: Value, resources: Value) -> Result<Value, String> {
        let store = Store::in_memory();
        let range = json!({"spec": {"limits": [limit]}});
        store.commit(vec![Write::create("/core/limitranges/red/one", range.to_string())]).await.unwrap();
        let user = User::master("test");
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "resources": resources}]}});
        let mut review = creation(&user, "", "pods", "red", pod);
        complete(&store, &mut review);
        check(&store, &review).map_err(|error| error.message)?;
        Ok(review.object)
    }

    #[tokio::test]
    async fn containers_get_the_defaults() {
        let limit =
            json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m", "memory": "1Gi"}});
        let pod = reviewed(limit, json!({"requests": {"memory": "2Gi"}})).await.unwrap();
        let expected = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m", "memory": "2Gi"}});
        assert_eq!(pod["spec"]["containers"][0]["resources"], expected);
        assert_eq!(
            pod.annotation(ANNOTATION),
            Some("LimitRanger plugin set: cpu request for container a; cpu limit for container a")
        );
    }

    #[tokio::test]
    async fn what_is_outside_of_the_limits_is_refused() {
        let container = |field: &str, amount: &str| json!({"type": "Container", field: {"cpu": amount}});
        for (limit, resources, expected) in [
            (
                container("max", "1"),
                json!({"limits": {"cpu": "2"}}),
                Some("maximum cpu usage per Container is 1, but limit is 2"),
            ),
            (container("max", "1"), json!({}), Some("maximum cpu usage per Container is 1.  No limit is specified")),
            (container("max", "1"), json!({"limits": {"cpu": "1000m"}}), None),
            (
                container("min", "1"),
                json!({"requests": {"cpu": "500m"}}),
                Some("minimum cpu usage per Container is 1, but request is 500m"),
            ),
            (
                container("maxLimitRequestRatio", "2"),
                json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
                Some("cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
            ),
            (
                json!({"type": "Pod", "max": {"cpu": "1"}}),
                json!({"limits": {"cpu": "1500m"}}),
                Some("maximum cpu usage per Pod is 1, but limit is 1500m"),
            ),
        ] {
            let outcome = reviewed(limit.clone(), resources.clone()).await;
            let expected = expected.map(|problem| format!("pods \"it\" is forbidden: {problem}"));
            assert_eq!(outcome.err(), expected, "{limit} {resources}");
        }
    }
}
