//! Policies that change.

use http::StatusCode;
use serde_json::Value;
use windlass_merge::{ListType, MapType, Shape, typed};
use windlass_schema::Schema;

use super::{
    invocation::{Bound, Invocation, Policies, Refusal, conditions_hold, failure},
    policy::{Body, Mutation},
};
use crate::{
    ApiError, Cause,
    admission::{Review, reinvocation::Reinvocation},
    cel::{Answer, Facts},
    object::Object,
    registry::Served,
    rest,
};

impl Policies {
    /// Lets policies change the object.
    pub(in crate::admission) async fn mutate(
        &self,
        policies: &[Bound],
        review: &mut Review<'_>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        if policies.is_empty() || !review.object.is_object() {
            return Ok(());
        }
        let mut refusals = Vec::new();
        for invocation in self.invocations(policies, review, &mut refusals).await {
            let Invocation { policy, binding, .. } = &invocation;
            let body = match &policy.body {
                Ok(body) => body,
                Err(error) => {
                    refusals.extend(failure(policy, Some(binding), error.clone()));
                    continue;
                }
            };
            let id = format!("policy:{}/{}/{}", policy.name, binding.name, invocation.parameters.uid());
            match self.change(&invocation, body, review, rounds.calls(&id)).await? {
                Ok(changed) => {
                    if changed {
                        rounds.note_change();
                    }
                    if body.is_reinvoked {
                        rounds.note_call(&id);
                    }
                }
                Err(why) => refusals.extend(failure(policy, Some(binding), why).map(invalid)),
            }
        }
        rounds.end(&review.object);
        if refusals.is_empty() { Ok(()) } else { Err(denial(review, refusals)) }
    }

    /// Applies all mutations of a policy; whether the object changed, or why that cannot be.
    async fn change(
        &self,
        invocation: &Invocation,
        body: &Body,
        review: &mut Review<'_>,
        is_called: bool,
    ) -> Result<Result<bool, String>, ApiError> {
        let mut facts = self.facts(invocation, body, review).await?;
        match conditions_hold(body, &facts) {
            Ok(true) if is_called => {}
            Ok(_) => return Ok(Ok(false)),
            Err(why) => return Ok(Err(why)),
        }
        let kind = &invocation.form.kind;
        let served = self.registry.by_kind(&kind.group, &kind.version, &kind.kind);
        let before = invocation.form.show(&self.webhooks, &review.object).await?;
        let mut object = before.clone();
        for mutation in &body.mutations {
            object = match mutated(mutation, &facts, object, served.as_ref()) {
                Ok(object) => object,
                Err(why) => return Ok(Err(why)),
            };
            facts.replace_object(&object);
        }
        let changed = object != before;
        if changed {
            review.object = invocation.form.take_back(&self.webhooks, object).await?;
        }
        Ok(Ok(changed))
    }
}

fn mutated(mutation: &Mutation, facts: &Facts, object: Value, served: Option<&Served>) -> Result<Value, String> {
    let shape = served.map(|served| &served.schema);
    let changed = match mutation {
        Mutation::Apply(expression) => {
            let answer = expression.evaluate(facts).map_err(|error| error.to_string())?;
            let Answer::Other(Some(Value::Object(members))) = answer else {
                return Err("unsupported return type from ApplyConfiguration expression".to_owned());
            };
            merged(&object, Value::Object(members), shape)?
        }
        Mutation::Patch(expression) => {
            let answer = expression.evaluate(facts).map_err(|error| error.to_string())?;
            let Answer::Other(Some(operations @ Value::Array(_))) = answer else {
                return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
            };
            let mut object = object;
            windlass_merge::json_patch(&mut object, &operations).map_err(|error| format!("JSON Patch: {error}"))?;
            object
        }
    };
    match served {
        Some(served) => rest::completed(served, changed).map_err(|error| error.message),
        None => Ok(changed),
    }
}

/// The object with the fields of `configuration`, as an apply would set them.
fn merged(object: &Value, mut configuration: Value, shape: Option<&Schema>) -> Result<Value, String> {
    for field in ["apiVersion", "kind"] {
        configuration[field] = object[field].clone();
    }
    if let Some(problem) = typed::check(&configuration, shape).first() {
        return Err(format!("error applying patch: failed to convert patch object to typed object: {problem:?}"));
    }
    let mut atomic = Vec::new();
    find_atomic(&configuration, shape, "", &mut atomic);
    if !atomic.is_empty() {
        let paths = atomic.join(", ");
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"
        ));
    }
    Ok(typed::merge(object, &configuration, shape))
}

/// The paths of what has one owner: a part of it would replace all of it.
fn find_atomic<S: Shape>(value: &Value, shape: Option<&S>, path: &str, found: &mut Vec<String>) {
    let Some(shape) = shape else { return };
    match value {
        Value::Object(members) => {
            if shape.map_type() == MapType::Atomic {
                found.push(path.to_owned());
            }
            for (name, member) in members {
                find_atomic(member, shape.field(name).as_ref(), &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => {
            if shape.list_type() == ListType::Atomic {
                found.push(path.to_owned());
            }
            for item in items {
                find_atomic(item, shape.item().as_ref(), &format!("{path}[]"), found);
            }
        }
        _ => {}
    }
}

fn invalid(refusal: Refusal) -> Refusal {
    Refusal { reason: Some("Invalid".to_owned()), ..refusal }
}

fn denial(review: &Review<'_>, refusals: Vec<Refusal>) -> ApiError {
    let reason = refusals.first().and_then(|refusal| refusal.reason.clone());
    let messages = refusals.iter().map(|refusal| match &refusal.binding {
        Some(binding) => {
            format!("policy '{}' with binding '{binding}' denied request: {}", refusal.policy, refusal.message)
        }
        None => format!("policy {:?} denied request: {}", refusal.policy, refusal.message),
    });
    let messages: Vec<String> = messages.collect();
    let mut error = review.refuse("admission request denied by policy");
    error.code = StatusCode::FORBIDDEN;
    error.message = messages.first().cloned().unwrap_or_default();
    if let Some(reason) = reason {
        error.reason = reason.into();
    }
    messages.into_iter().fold(error, |error, message| error.with_cause(Cause { message, ..Cause::default() }))
}
