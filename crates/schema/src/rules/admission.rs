//! Webhooks and policies of admission.

use super::cursor::{At, named, one_of, required, unique};
use super::selector;
use crate::{FieldError, Kind, names};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];

pub(super) fn check(kind: &Kind, object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    match kind.kind.as_str() {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhooks(object, errors),
        "ValidatingAdmissionPolicy" => {
            policy(&spec, errors);
            validations(&spec, errors);
        }
        "MutatingAdmissionPolicy" => {
            policy(&spec, errors);
            mutations(&spec, errors);
        }
        "ValidatingAdmissionPolicyBinding" => {
            binding(&spec, errors);
            let actions = spec.member("validationActions");
            required(&actions, errors);
            actions.items().for_each(|action| one_of(&action, &["Audit", "Deny", "Warn"], errors));
        }
        "MutatingAdmissionPolicyBinding" => binding(&spec, errors),
        _ => {}
    }
}

fn webhooks(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let hooks = object.member("webhooks");
    for hook in hooks.items() {
        let name = hook.member("name");
        required(&name, errors);
        if !name.is_absent() && name.text().split('.').count() < 3 {
            errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
        }
        one_of(&hook.member("failurePolicy"), &FAILURE_POLICIES, errors);
        one_of(&hook.member("matchPolicy"), &MATCH_POLICIES, errors);
        one_of(&hook.member("reinvocationPolicy"), &REINVOCATION_POLICIES, errors);
        let side_effects = hook.member("sideEffects");
        if side_effects.is_absent() {
            errors.push(side_effects.missing("must specify one of None, NoneOnDryRun"));
        }
        one_of(&side_effects, &["None", "NoneOnDryRun"], errors);
        let timeout = hook.member("timeoutSeconds");
        if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
            errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
        }
        review_versions(&hook.member("admissionReviewVersions"), errors);
        let config = hook.member("clientConfig");
        if config.member("url").is_absent() == config.member("service").is_absent() {
            errors.push(config.missing("exactly one of url or service is required"));
        }
        selector::check(&hook.member("namespaceSelector"), errors);
        selector::check(&hook.member("objectSelector"), errors);
    }
    unique(&hooks, "name", errors);
}

fn review_versions(versions: &At<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_absent() {
        return errors.push(versions.missing("must specify one of v1, v1beta1"));
    }
    if !versions.items().any(|version| matches!(version.text(), "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

fn policy(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&spec.member("failurePolicy"), &FAILURE_POLICIES, errors);
    let constraints = spec.member("matchConstraints");
    if constraints.value.is_null() {
        errors.push(constraints.missing(""));
    } else {
        required(&constraints.member("resourceRules"), errors);
        matching(&constraints, errors);
    }
    let parameters = spec.member("paramKind");
    if !parameters.value.is_null() {
        required(&parameters.member("apiVersion"), errors);
        required(&parameters.member("kind"), errors);
    }
    for list in ["variables", "matchConditions"] {
        for entry in spec.member(list).items() {
            required(&entry.member("name"), errors);
            required(&entry.member("expression"), errors);
        }
        unique(&spec.member(list), "name", errors);
    }
}

fn validations(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let (validations, annotations) = (spec.member("validations"), spec.member("auditAnnotations"));
    if validations.is_absent() && annotations.is_absent() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.extend([validations.missing(detail), annotations.missing(detail)]);
    }
    for validation in validations.items() {
        let (expression, message) = (validation.member("expression"), validation.member("message"));
        if expression.text().trim().is_empty() {
            errors.push(expression.missing("expression is not specified"));
        }
        if message.text().trim().contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        }
        one_of(&validation.member("reason"), &REASONS, errors);
    }
    unique(&annotations, "key", errors);
}

fn mutations(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let mutations = spec.member("mutations");
    if mutations.is_absent() {
        errors.push(mutations.missing("mutations must contain at least one item"));
    }
    let reinvocation = spec.member("reinvocationPolicy");
    required(&reinvocation, errors);
    one_of(&reinvocation, &REINVOCATION_POLICIES, errors);
}

fn binding(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let policy = spec.member("policyName");
    required(&policy, errors);
    named(&policy, names::subdomain, errors);
    matching(&spec.member("matchResources"), errors);
}

fn matching(resources: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&resources.member("matchPolicy"), &MATCH_POLICIES, errors);
    selector::check(&resources.member("namespaceSelector"), errors);
    selector::check(&resources.member("objectSelector"), errors);
}
