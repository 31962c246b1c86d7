//! Policies that refuse.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::json;

use super::{
    invocation::{Bound, Invocation, Policies, Refusal, conditions_hold, failure},
    policy::{Body, Validation},
};
use crate::{
    ApiError, Cause,
    admission::Review,
    cel::{Answer, Facts},
};

/// The longest message that an expression may yield.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// The longest value of an audit annotation.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

type Annotations = BTreeMap<String, Vec<String>>;

impl Policies {
    /// Lets policies refuse the object.
    pub(in crate::admission) async fn validate(
        &self,
        policies: &[Bound],
        review: &mut Review<'_>,
    ) -> Result<(), ApiError> {
        if policies.is_empty() {
            return Ok(());
        }
        let mut refusals = Vec::new();
        let mut annotations = Annotations::new();
        for invocation in self.invocations(policies, review, &mut refusals).await {
            self.judge(&invocation, review, &mut refusals, &mut annotations).await?;
        }
        for (key, values) in annotations {
            review.annotations.insert(key, values.join(", "));
        }
        match refusals.into_iter().next() {
            None => Ok(()),
            Some(refusal) => Err(denial(review, refusal)),
        }
    }

    async fn judge(
        &self,
        invocation: &Invocation,
        review: &mut Review<'_>,
        refusals: &mut Vec<Refusal>,
        annotations: &mut Annotations,
    ) -> Result<(), ApiError> {
        let Invocation { policy, binding, .. } = invocation;
        let failed = |why: String| failure(policy, Some(binding), why);
        let body = match &policy.body {
            Ok(body) => body,
            Err(error) => {
                refusals.extend(failed(error.clone()));
                return Ok(());
            }
        };
        let facts = self.facts(invocation, body, review).await?;
        match conditions_hold(body, &facts) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                refusals.extend(failed(error));
                return Ok(());
            }
        }
        for (index, validation) in body.validations.iter().enumerate() {
            let refusal = match validation.expression.holds(&facts) {
                Ok(true) => None,
                Ok(false) => Some(Refusal {
                    policy: policy.name.clone(),
                    binding: Some(binding.name.clone()),
                    message: message(validation, &facts),
                    reason: validation.reason.clone(),
                }),
                Err(error) => failed(error.to_string()),
            };
            if let Some(refusal) = refusal {
                enforce(invocation, index, refusal, review, refusals);
            }
        }
        refusals.extend(annotate(invocation, body, &facts, annotations));
        Ok(())
    }
}

/// Draws the consequences that the binding wants.
fn enforce(
    invocation: &Invocation,
    index: usize,
    refusal: Refusal,
    review: &mut Review<'_>,
    refusals: &mut Vec<Refusal>,
) {
    let actions = &invocation.binding.actions;
    let has = |action: &str| actions.iter().any(|known| known == action);
    if has("Warn") {
        review.warnings.push(format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            refusal.policy, invocation.binding.name, refusal.message
        ));
    }
    if has("Audit") {
        let failure = json!([{ "message": refusal.message, "policy": refusal.policy, "binding": invocation.binding.name,
            "expressionIndex": index, "validationActions": actions }]);
        review
            .annotations
            .insert("validation.policy.admission.k8s.io/validation_failure".to_owned(), failure.to_string());
    }
    if has("Deny") {
        refusals.push(refusal);
    }
}

/// What to say of a validation that does not hold.
fn message(validation: &Validation, facts: &Facts) -> String {
    let evaluated = validation.message_expression.as_ref().and_then(|expression| match expression.evaluate(facts) {
        Ok(Answer::Text(text)) => {
            let text = text.trim();
            let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
            fits.then(|| text.to_owned())
        }
        _ => None,
    });
    let fallback = || format!("failed expression: {}", validation.expression.text());
    evaluated.or_else(|| validation.message.clone()).unwrap_or_else(fallback)
}

/// Collects what the policy has to say for the audit log; what fails is a refusal.
fn annotate(invocation: &Invocation, body: &Body, facts: &Facts, annotations: &mut Annotations) -> Option<Refusal> {
    let policy = &invocation.policy;
    let failed = |why: String| failure(policy, Some(&invocation.binding), why);
    for (key, expression) in &body.annotations {
        let value = match expression.evaluate(facts) {
            Ok(Answer::Text(text)) => text.trim().chars().take(ANNOTATION_BYTES_MAX).collect::<String>(),
            Ok(Answer::Null) => continue,
            Ok(_) => {
                return failed(format!(
                    "valueExpression '{}' resulted in unsupported return type. Return type must be either string or null.",
                    expression.text()
                ));
            }
            Err(error) => return failed(error.to_string()),
        };
        let values = annotations.entry(format!("{}/{key}", policy.name)).or_default();
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    None
}

fn denial(review: &Review<'_>, refusal: Refusal) -> ApiError {
    let Refusal { policy, binding, message, reason } = refusal;
    let with = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
    let reason = reason.unwrap_or_else(|| "Invalid".to_owned());
    let code = match reason.as_str() {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let error = review.refuse(&message);
    let cause = Cause { message, ..Cause::default() };
    ApiError { code, reason: reason.into(), ..error }.with_cause(cause)
}
