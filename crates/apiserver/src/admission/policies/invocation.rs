//! Which policies are about a request, and with which parameters.

use std::sync::Arc;

use serde_json::Value;
use windlass_store::Store;

use super::{
    binding::Binding,
    parameters::{self, Sources},
    policy::{Body, Policy},
};
use crate::{
    ApiError,
    admission::{Review, exchange, form::Form, stored},
    auth::Auth,
    cel::{Authority, Facts, ResourceQuestion},
    registry::Registry,
    webhook::Webhooks,
};

/// The policies of one server.
#[derive(Debug)]
pub(in crate::admission) struct Policies {
    pub(super) store: Store,
    pub(super) auth: Arc<Auth>,
    pub(super) registry: Arc<Registry>,
    pub(super) webhooks: Arc<Webhooks>,
}

/// A policy that is about the request, by one binding and with one set of parameters.
pub(super) struct Invocation {
    pub(super) policy: Arc<Policy>,
    pub(super) binding: Arc<Binding>,
    pub(super) form: Form,
    pub(super) parameters: Value,
}

/// Why a policy refuses a request.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) policy: String,
    pub(super) binding: Option<String>,
    pub(super) message: String,
    pub(super) reason: Option<String>,
}

/// A policy and what puts it into force.
pub(in crate::admission) type Bound = (Arc<Policy>, Vec<Arc<Binding>>);

impl Policies {
    pub(in crate::admission) fn new(
        store: Store,
        auth: Arc<Auth>,
        registry: Arc<Registry>,
        webhooks: Arc<Webhooks>,
    ) -> Self {
        Self { store, auth, registry, webhooks }
    }

    /// The policies that are about the request; what is wrong with one is a refusal, unless it ignores failures.
    pub(super) async fn invocations(
        &self,
        policies: &[Bound],
        review: &Review<'_>,
        refusals: &mut Vec<Refusal>,
    ) -> Vec<Invocation> {
        let mut invocations = Vec::new();
        for (policy, bindings) in policies {
            let mut refuse = |binding: Option<&Binding>, why: &str| {
                let part = if binding.is_some() { "binding" } else { "policy" };
                let message = format!("failed to configure {part}: {why}");
                refusals.extend(failure(policy, binding, message));
            };
            let form = match policy.criteria.find(&self.store, &self.registry, review) {
                Ok(Some(form)) => form,
                Ok(None) => continue,
                Err(error) => {
                    refuse(None, &error.message);
                    continue;
                }
            };
            for binding in bindings {
                match self.parameters(policy, binding, review).await {
                    Ok(found) => invocations.extend(found.into_iter().map(|parameters| Invocation {
                        policy: Arc::clone(policy),
                        binding: Arc::clone(binding),
                        form: form.clone(),
                        parameters,
                    })),
                    Err(why) => refuse(Some(binding), &why),
                }
            }
        }
        invocations
    }

    /// The parameters of a binding that is about the request; none if it is not.
    async fn parameters(&self, policy: &Policy, binding: &Binding, review: &Review<'_>) -> Result<Vec<Value>, String> {
        if let Some(criteria) = &binding.criteria {
            let found = criteria.find(&self.store, &self.registry, review);
            if found.map_err(|error| error.message)?.is_none() {
                return Ok(Vec::new());
            }
        }
        let sources = Sources { store: &self.store, registry: &self.registry, webhooks: &self.webhooks };
        let namespace = namespace_name(review);
        parameters::collect(sources, policy.parameter_kind.as_ref(), binding.parameters.as_ref(), namespace).await
    }

    /// What the expressions of a policy get to know.
    pub(super) async fn facts(
        &self,
        invocation: &Invocation,
        body: &Body,
        review: &Review<'_>,
    ) -> Result<Facts, ApiError> {
        let object = invocation.form.show(&self.webhooks, &review.object).await?;
        let old = invocation.form.show(&self.webhooks, &review.old).await?;
        let request = exchange::request(review, &invocation.form, &object, &old);
        let namespace: Option<Value> = match namespace_name(review) {
            "" => None,
            name => stored(&self.store, &format!("/core/namespaces/{name}")),
        };
        let facts = Facts::new(&request, authority(&self.auth, review))
            .in_namespace(&namespace.unwrap_or_default())
            .with_params(&invocation.parameters)
            .with_variables(&body.variables);
        Ok(facts)
    }
}

/// A failure of a policy, unless it ignores failures.
pub(super) fn failure(policy: &Policy, binding: Option<&Binding>, message: String) -> Option<Refusal> {
    let binding = binding.map(|binding| binding.name.clone());
    (!policy.ignores_failures).then(|| Refusal { policy: policy.name.clone(), binding, message, reason: None })
}

/// Whether all conditions hold: one that does not hold decides, errors only if none does.
pub(super) fn conditions_hold(body: &Body, facts: &Facts) -> Result<bool, String> {
    let facts = facts.for_conditions();
    let mut errors = Vec::new();
    for condition in &body.conditions {
        match condition.holds(&facts) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => errors.push(error.to_string()),
        }
    }
    match &errors[..] {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// The namespace of the request; a namespace is not in one.
fn namespace_name<'a>(review: &Review<'a>) -> &'a str {
    let own = review.group.is_empty() && review.resource == "namespaces";
    if own { "" } else { review.namespace }
}

/// Who answers questions of expressions about rights.
pub(in crate::admission) fn authority(auth: &Arc<Auth>, review: &Review<'_>) -> Authority {
    Authority {
        auth: Arc::clone(auth),
        user: review.user.clone(),
        resource: ResourceQuestion {
            group: review.group.to_owned(),
            resource: review.resource.to_owned(),
            subresource: review.subresource.to_owned(),
            namespace: review.namespace.to_owned(),
            name: review.given_name.to_owned(),
        },
    }
}
