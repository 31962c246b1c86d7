//! Policies of admission, and what binds them.

use super::admission::{FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, conditions, rule};
use super::cursor::{At, named, one_of, required, unique};
use super::selector;
use crate::{FieldError, Kind, names};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
/// How many audit annotations a policy may make.
const ANNOTATIONS_MAX: usize = 20;
/// How long the expression of an audit annotation may be.
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;

pub(super) fn check(kind: &Kind, object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    match kind.kind.as_str() {
        "ValidatingAdmissionPolicy" => {
            policy(&spec, errors);
            validations(&spec, errors);
            let name = object.member("metadata").member("name");
            annotations(&spec.member("auditAnnotations"), name.text(), errors);
        }
        "MutatingAdmissionPolicy" => {
            policy(&spec, errors);
            mutable(&spec.member("matchConstraints"), errors);
            mutations(&spec, errors);
        }
        "ValidatingAdmissionPolicyBinding" => {
            binding(&spec, errors);
            actions(&spec.member("validationActions"), errors);
        }
        "MutatingAdmissionPolicyBinding" => {
            binding(&spec, errors);
            mutable(&spec.member("matchResources"), errors);
        }
        _ => {}
    }
}

fn policy(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&spec.member("failurePolicy"), &FAILURE_POLICIES, errors);
    parameter_kind(&spec.member("paramKind"), errors);
    let constraints = spec.member("matchConstraints");
    if constraints.value.is_null() {
        errors.push(constraints.missing(""));
    } else {
        matching(&constraints, errors);
        required(&constraints.member("resourceRules"), errors);
    }
    conditions(&spec.member("matchConditions"), errors);
    for variable in spec.member("variables").items() {
        let (name, expression) = (variable.member("name"), variable.member("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.missing("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            errors.push(expression.missing("expression is not specified"));
        }
    }
}

fn parameter_kind(parameters: &At<'_>, errors: &mut Vec<FieldError>) {
    if parameters.value.is_null() {
        return;
    }
    let (api_version, kind) = (parameters.member("apiVersion"), parameters.member("kind"));
    required(&api_version, errors);
    let (group, version) = api_version.text().rsplit_once('/').unwrap_or(("", api_version.text()));
    if !api_version.is_absent() && group.contains('/') {
        errors.push(api_version.invalid(format!("unexpected GroupVersion string: {}", api_version.text())));
    } else if !api_version.is_absent() {
        if !group.is_empty() {
            errors.extend(names::subdomain(group).into_iter().map(|detail| api_version.invalid(detail)));
        }
        errors.extend(names::label_1035(version).into_iter().map(|detail| api_version.invalid(detail)));
    }
    required(&kind, errors);
    if !kind.is_absent() {
        let problems = names::label_1035(&kind.text().to_lowercase()).join(",");
        if !problems.is_empty() {
            errors.push(kind.invalid(format!("may have mixed case, but should otherwise match: {problems}")));
        }
    }
}

/// Whether `name` can be a variable of CEL.
fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let goes_on = name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_');
    begins && goes_on && !names::CEL_RESERVED.contains(&name)
}

fn validations(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let (validations, annotations) = (spec.member("validations"), spec.member("auditAnnotations"));
    if validations.is_absent() && annotations.is_absent() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.extend([validations.missing(detail), annotations.missing(detail)]);
    }
    for validation in validations.items() {
        let expression = validation.member("expression");
        if expression.text().trim().is_empty() {
            errors.push(expression.missing("expression is not specified"));
        }
        for name in ["messageExpression", "message"] {
            let text = validation.member(name);
            if !text.text().is_empty() && text.text().trim().is_empty() {
                errors.push(text.invalid("must be non-empty if specified"));
            }
        }
        let message = validation.member("message");
        if message.text().trim().contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        }
        one_of(&validation.member("reason"), &REASONS, errors);
    }
}

fn annotations(list: &At<'_>, policy: &str, errors: &mut Vec<FieldError>) {
    if list.items().count() > ANNOTATIONS_MAX {
        errors.push(list.invalid(format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations")));
    }
    for annotation in list.items() {
        let (key, value) = (annotation.member("key"), annotation.member("valueExpression"));
        let name = format!("{policy}/{}", key.text());
        let problems = names::qualified(&name).into_iter();
        errors.extend(problems.map(|detail| FieldError::invalid(key.path.clone(), name.clone(), detail)));
        match value.text().trim().len() {
            0 => errors.push(value.missing("valueExpression is not specified")),
            length if length > ANNOTATION_BYTES_MAX => {
                errors.push(value.missing(&format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length")));
            }
            _ => {}
        }
    }
    unique(list, "key", errors);
}

fn mutations(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let mutations = spec.member("mutations");
    if mutations.is_absent() {
        errors.push(mutations.missing("mutations must contain at least one item"));
    }
    mutations.items().for_each(|item| mutation(&item, errors));
    let reinvocation = spec.member("reinvocationPolicy");
    required(&reinvocation, errors);
    one_of(&reinvocation, &REINVOCATION_POLICIES, errors);
}

fn mutation(mutation: &At<'_>, errors: &mut Vec<FieldError>) {
    let patch_type = mutation.member("patchType");
    required(&patch_type, errors);
    one_of(&patch_type, &["ApplyConfiguration", "JSONPatch"], errors);
    let (wanted, other) = match patch_type.text() {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        _ => return,
    };
    let patch = mutation.member(wanted);
    if patch.value.is_null() {
        errors.push(patch.missing(&format!("must be specified when patchType is {}", patch_type.text())));
    } else if patch.member("expression").text().trim().is_empty() {
        errors.push(patch.member("expression").missing(""));
    }
    let other_patch = mutation.member(other);
    if !other_patch.value.is_null() {
        let detail = format!("must not be specified when patchType is {}", patch_type.text());
        errors.push(FieldError::invalid(other_patch.path, format!("{{{other}}}"), detail));
    }
}

fn binding(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let policy = spec.member("policyName");
    required(&policy, errors);
    named(&policy, names::subdomain, errors);
    parameters(&spec.member("paramRef"), errors);
    matching(&spec.member("matchResources"), errors);
}

fn parameters(reference: &At<'_>, errors: &mut Vec<FieldError>) {
    if reference.value.is_null() {
        return;
    }
    let (name, labels) = (reference.member("name"), reference.member("selector"));
    named(&name, names::path_segment, errors);
    selector::check(&labels, errors);
    match (name.is_absent(), labels.value.is_null()) {
        (false, false) => {
            let detail = "name and selector are mutually exclusive";
            errors.extend([name.forbidden(detail), labels.forbidden(detail)]);
        }
        (true, true) => errors.push(reference.missing("one of name or selector must be specified")),
        _ => {}
    }
    let action = reference.member("parameterNotFoundAction");
    required(&action, errors);
    one_of(&action, &["Deny", "Allow"], errors);
}

fn actions(list: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = std::collections::HashSet::new();
    for action in list.items() {
        one_of(&action, &ACTIONS, errors);
        if !seen.insert(action.text()) {
            errors.push(FieldError::duplicate(action.path.clone(), action.value.clone()));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(list.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and \
             headers serves no purpose)",
        ));
    }
    if list.is_absent() {
        errors.push(list.missing("at least one validation action is required"));
    }
}

fn matching(resources: &At<'_>, errors: &mut Vec<FieldError>) {
    one_of(&resources.member("matchPolicy"), &MATCH_POLICIES, errors);
    selector::check(&resources.member("namespaceSelector"), errors);
    selector::check(&resources.member("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for item in resources.member(list).items() {
            let mut seen = std::collections::HashSet::new();
            for name in item.member("resourceNames").items() {
                named(&name, names::path_segment, errors);
                if !seen.insert(name.text()) {
                    errors.push(FieldError::duplicate(name.path.clone(), name.value.clone()));
                }
            }
            rule(&item, errors);
        }
    }
}

/// Only what is created or changed can be mutated.
fn mutable(resources: &At<'_>, errors: &mut Vec<FieldError>) {
    let rules = resources.member("resourceRules");
    for operation in rules.items().flat_map(|rule| rule.member("operations").items()) {
        if !MUTATING_OPERATIONS.contains(&operation.text()) {
            let path = format!("{}.operations", rules.path);
            errors.push(FieldError::not_supported(path, operation.value.clone(), &MUTATING_OPERATIONS));
        }
    }
}
