//! Calling webhooks: those that may change an object one after the other, those that may refuse it all at once.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::Value;
use windlass_store::Store;

use super::{
    Review, authority,
    exchange::{self, Phase, Verdict},
    form::Form,
    hook::Hook,
    matching,
    reinvocation::Reinvocation,
};
use crate::{ApiError, Subject, auth::Auth, cel::Facts, registry::Registry, rest, webhook::Webhooks};

/// How long all webhooks of one request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(34);

/// The webhooks of one server.
#[derive(Debug)]
pub(super) struct Hooks {
    store: Store,
    registry: Arc<Registry>,
    webhooks: Arc<Webhooks>,
    auth: Arc<Auth>,
}

/// A webhook that is to be called, and what it gets to see.
struct Invocation {
    hook: Arc<Hook>,
    form: Form,
    object: Value,
    request: Value,
}

/// Why a request does not get past a webhook.
enum Failure {
    /// The webhook could not be asked; its configuration says what that means.
    Call(String),
    /// The request is refused.
    Refused(ApiError),
}

impl Hooks {
    pub(super) fn new(store: Store, auth: Arc<Auth>, registry: Arc<Registry>, webhooks: Arc<Webhooks>) -> Self {
        Self { store, registry, webhooks, auth }
    }

    /// Lets webhooks change the object.
    pub(super) async fn mutate(
        &self,
        hooks: &[Arc<Hook>],
        review: &mut Review<'_>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        if hooks.is_empty() {
            return Ok(());
        }
        let all = async {
            for hook in hooks {
                let Some(invocation) = self.invocation(hook, review).await? else { continue };
                if !rounds.calls(&hook.id) {
                    continue;
                }
                if self.change(invocation, review).await? {
                    rounds.note_change();
                }
                if hook.is_reinvoked() {
                    rounds.note_call(&hook.id);
                }
            }
            Ok(())
        };
        match tokio::time::timeout(REQUEST_TIME_MAX, all).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(ApiError::timeout("request did not complete within requested timeout", 0)),
        }
        rounds.end(&review.object);
        Ok(())
    }

    /// Lets webhooks refuse the object.
    pub(super) async fn validate(&self, hooks: &[Arc<Hook>], review: &mut Review<'_>) -> Result<(), ApiError> {
        if hooks.is_empty() {
            return Ok(());
        }
        let mut invocations = Vec::new();
        for hook in hooks {
            invocations.extend(self.invocation(hook, review).await?);
        }
        let calls = invocations.iter().map(|invocation| self.call(invocation, review.dry_run, Phase::Validating));
        let mut refusal = Ok(());
        for (invocation, outcome) in invocations.iter().zip(join_all(calls).await) {
            let outcome = outcome.and_then(|verdict| self.heed(&invocation.hook, verdict, review).map(|_| ()));
            // Of several refusals the first counts, but every webhook gets its warnings through.
            refusal = refusal.and(settle(&invocation.hook, outcome));
        }
        refusal
    }

    /// Whether and how `hook` is called for the request.
    async fn invocation(&self, hook: &Arc<Hook>, review: &Review<'_>) -> Result<Option<Invocation>, ApiError> {
        if !matching::selects_object(&hook.objects, review) {
            return Ok(None);
        }
        // A namespace that is not there matters only to webhooks that are about the request.
        let in_namespace = matching::selects_namespace(&self.store, &hook.namespaces, review);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let found = Form::find(&self.registry, &hook.raw.rules, hook.takes_equivalents(), review);
        let Some(form) = found else { return Ok(None) };
        in_namespace?;
        let object = form.show(&self.webhooks, &review.object).await?;
        let old = form.show(&self.webhooks, &review.old).await?;
        let request = exchange::request(review, &form, &object, &old);
        if !hook.conditions.is_empty() && !self.conditions_hold(hook, &request, review)? {
            return Ok(None);
        }
        Ok(Some(Invocation { hook: Arc::clone(hook), form, object, request }))
    }

    /// Asks one webhook for changes; whether it made some.
    async fn change(&self, invocation: Invocation, review: &mut Review<'_>) -> Result<bool, ApiError> {
        let hook = Arc::clone(&invocation.hook);
        let outcome = self.call(&invocation, review.dry_run, Phase::Mutating).await;
        let patch = match outcome.and_then(|verdict| self.heed(&hook, verdict, review)) {
            Ok(patch) => patch,
            Err(failure) => return settle(&hook, Err(failure)).map(|()| false),
        };
        let Some(patch) = patch else { return Ok(false) };
        if review.object.is_null() {
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(ApiError::internal(format!("admission webhook {:?} {why}", hook.raw.name)));
        }
        let mut object = invocation.object.clone();
        windlass_merge::json_patch(&mut object, &patch).map_err(ApiError::internal)?;
        let kind = &invocation.form.kind;
        if let Some(served) = self.registry.by_kind(&kind.group, &kind.version, &kind.kind) {
            object = rest::completed(&served, object).map_err(|error| ApiError::internal(error.message))?;
        }
        let changed = object != invocation.object;
        if changed {
            review.object = invocation.form.take_back(&self.webhooks, object).await?;
        }
        Ok(changed)
    }

    async fn call(&self, invocation: &Invocation, dry_run: bool, phase: Phase) -> Result<Verdict, Failure> {
        let hook = &invocation.hook;
        if dry_run && !hook.allows_dry_run() {
            let why = format!("admission webhook {:?} does not support dry run", hook.raw.name);
            return Err(Failure::Refused(ApiError::bad_request(why)));
        }
        let sent = exchange::review(invocation.request.clone(), &hook.raw.admission_review_versions);
        let Some(sent) = sent else {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Call(format!("could not create admission objects: {why}")));
        };
        let answer = self.webhooks.call(&hook.raw.client_config, &sent, hook.timeout()).await;
        let answer = answer.map_err(|error| Failure::Call(format!("failed to call webhook: {error}")))?;
        exchange::verdict(&sent, answer, phase)
            .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))
    }

    /// Passes on what a webhook says, and gives the patch that it wants.
    fn heed(&self, hook: &Hook, verdict: Verdict, review: &mut Review<'_>) -> Result<Option<Value>, Failure> {
        let Verdict { allowed, ref patch, ref warnings, ref annotations, .. } = verdict;
        review.warnings.extend(warnings.iter().cloned());
        let named = annotations.iter().map(|(key, value)| (format!("{}/{key}", hook.raw.name), value.clone()));
        review.annotations.extend(named);
        if allowed { Ok(patch.clone()) } else { Err(Failure::Refused(verdict.denial(&hook.raw.name))) }
    }

    /// Whether all conditions hold: one that does not hold decides, errors only if none does.
    fn conditions_hold(&self, hook: &Hook, request: &Value, review: &Review<'_>) -> Result<bool, ApiError> {
        let facts = Facts::new(request, authority(&self.auth, review)).for_conditions();
        let mut errors = Vec::new();
        for condition in &hook.conditions {
            let outcome = match condition {
                Ok(condition) => condition.holds(&facts).map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            match outcome {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(error) => errors.push(error),
            }
        }
        let why = match &errors[..] {
            [] => return Ok(true),
            _ if hook.ignores_failures() => return Ok(false),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        Err(ApiError::forbidden(Subject { group: review.group, resource: review.resource }, review.name, why))
    }
}

/// What a failure means for the request.
fn settle(hook: &Hook, outcome: Result<(), Failure>) -> Result<(), ApiError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Call(why)) => {
            let name = &hook.raw.name;
            let open = hook.ignores_failures();
            tracing::warn!(webhook = name, why, open, "a webhook could not be called");
            if open { Ok(()) } else { Err(ApiError::internal(format!("failed calling webhook {name:?}: {why}"))) }
        }
    }
}
