//! The eviction subresource: a delete that respects disruption budgets.

use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use windlass_store::{CommitError, Write};

use super::{delete, get, options::DeleteOptions, scope::Scope, selector::LabelSelector, storage};
use crate::{
    ApiError, Cause,
    admission::Operation,
    codec::{Body, document, read, respond},
    object::Object,
};

/// How often an eviction is tried again when the budget changes under it.
const TRIES_MAX: usize = 8;
/// When a client that was refused should ask again.
const RETRY_SECONDS: u32 = 10;

/// Answers a POST to `pods/NAME/eviction`.
pub(crate) async fn evict(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let eviction = document(&scope.headers, &body)?.value;
    if !eviction.name().is_empty() && eviction.name() != scope.request.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::new(&scope.query, eviction.get("deleteOptions"))?;
    options.dry_run |= scope.options.dry_run;
    let pod = get::live(scope, &scope.request.name).await?;
    scope.admit(Operation::Create, eviction).await?;
    if !is_free_to_go(&pod) {
        spend_budget(scope, &pod, options.dry_run).await?;
    }
    if !options.dry_run && options.uid.as_ref().is_none_or(|uid| uid == pod.uid()) {
        tell(scope).await?;
    }
    delete::delete_admitted(scope, &scope.request.name, &options).await?;
    let success = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(respond(StatusCode::CREATED, &success, &scope.accept))
}

/// Writes into the status of the Pod why it goes, for those who count its failures.
async fn tell(scope: &Scope) -> Result<(), ApiError> {
    let key = storage::key(&scope.kind, scope.namespace(), &scope.request.name);
    for _ in 0..TRIES_MAX {
        let Some(entry) = scope.api.store().snapshot().get(&key).cloned() else { return Ok(()) };
        let live = storage::decode(&scope.api, &scope.kind, &entry).await?;
        let bytes = storage::encode(&scope.api, &scope.kind, &told(live, &scope.now())).await?;
        match scope.api.store().commit(vec![Write::update(key.as_str(), entry.modified, bytes)]).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Precondition { .. }) => {}
            Err(error) => return Err(storage::store_error(error)),
        }
    }
    Err(ApiError::modified(scope.subject(), &scope.request.name))
}

/// The Pod with the condition of one that is evicted.
fn told(mut pod: Value, now: &str) -> Value {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let others = conditions.filter(|condition| condition["type"] != "DisruptionTarget").cloned();
    let conditions: Value = others.chain([condition]).collect();
    pod["status"]["conditions"] = conditions;
    pod
}

/// A Pod that serves nobody is evicted without asking.
fn is_free_to_go(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    pod.is_deleting() || matches!(phase, "Pending" | "Succeeded" | "Failed")
}

/// Takes one disruption from the budget that covers the Pod, if there is one.
async fn spend_budget(scope: &Scope, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
    let budgets = scope.api.registry().lookup("policy", "v1", "poddisruptionbudgets");
    let kind = &budgets.expect("the table has budgets");
    let prefix = storage::prefix(kind, scope.namespace());
    for _ in 0..TRIES_MAX {
        let snapshot = scope.api.store().snapshot();
        let mut budgets = Vec::new();
        for (key, entry) in snapshot.range(&prefix, None) {
            let budget = storage::decode(&scope.api, kind, entry).await?;
            let selector = budget.pointer("/spec/selector").unwrap_or(&Value::Null);
            if selector.is_object() && LabelSelector::of_value(selector).matches(pod) {
                budgets.push((key.to_string(), entry.modified, budget));
            }
        }
        let (key, revision, budget) = match budgets.len() {
            0 => return Ok(()),
            1 => budgets.swap_remove(0),
            _ => return Err(ApiError::internal("this pod has more than one PodDisruptionBudget")),
        };
        let spent = spend(&budget, pod.name(), scope.now())?;
        if dry_run {
            return Ok(());
        }
        let bytes = storage::encode(&scope.api, kind, &spent).await?;
        match scope.api.store().commit(vec![Write::update(key, revision, bytes)]).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Precondition { .. }) => {}
            Err(error) => return Err(storage::store_error(error)),
        }
    }
    Err(ApiError::too_many_requests("the disruption budget changes too fast; try again", RETRY_SECONDS))
}

/// The budget after the disruption of one more Pod.
fn spend(budget: &Value, pod: &str, now: String) -> Result<Value, ApiError> {
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    if number("/status/observedGeneration") < budget.generation() {
        return Err(ApiError::too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            RETRY_SECONDS,
        )
        .with_cause(cause(format!(
            "The disruption budget {} is still being processed by the server.",
            budget.name()
        ))));
    }
    if number("/status/disruptionsAllowed") <= 0 {
        let healthy = (number("/status/desiredHealthy"), number("/status/currentHealthy"));
        let why = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            budget.name(),
            healthy.0,
            healthy.1
        );
        let mut error =
            ApiError::too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 0);
        error.details = None;
        return Err(error.with_cause(cause(why)));
    }
    let mut spent = budget.clone();
    spent["status"]["disruptionsAllowed"] = (number("/status/disruptionsAllowed") - 1).into();
    spent["status"]["disruptedPods"][pod] = now.into();
    Ok(spent)
}

fn cause(message: String) -> Cause {
    Cause { reason: "DisruptionBudget".to_owned(), message, field: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evicted_pod_says_so_once() {
        let pod = json!({"status": {"conditions": [{"type": "Ready"}, {"type": "DisruptionTarget", "reason": "old"}]}});
        let told = told(pod, "now");
        let conditions = told["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[1]["reason"], "EvictionByEvictionAPI");
    }

    #[test]
    fn a_budget_is_spent_and_then_refuses() {
        let budget = json!({"metadata": {"name": "b"}, "status": {"disruptionsAllowed": 1, "desiredHealthy": 2, "currentHealthy": 3}});
        let spent = spend(&budget, "p", String::new()).unwrap();
        assert_eq!(spent["status"]["disruptionsAllowed"], 0);
        assert!(spent["status"]["disruptedPods"]["p"].is_string());
        let refused = spend(&spent, "q", String::new()).unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.details.unwrap().causes[0].reason, "DisruptionBudget");
    }
}
