//! Webhooks of admission.

use super::cursor::{At, named, one_of, port, required, unique};
use super::{admission_policy, selector};
use crate::{FieldError, Kind, names};

pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub(super) const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const URL_FORM: &str = "; desired format: https://host[/path]";
/// How many conditions a webhook or a policy may have.
const CONDITIONS_MAX: usize = 64;

pub(super) fn check(kind: &Kind, object: &At<'_>, errors: &mut Vec<FieldError>) {
    match kind.kind.as_str() {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhooks(object, errors),
        _ => admission_policy::check(kind, object, errors),
    }
}

fn webhooks(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let hooks = object.member("webhooks");
    for hook in hooks.items() {
        qualified_name(&hook.member("name"), errors);
        hook.member("rules").items().for_each(|item| rule(&item, errors));
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
        selector::check(&hook.member("namespaceSelector"), errors);
        selector::check(&hook.member("objectSelector"), errors);
        client_config(&hook.member("clientConfig"), errors);
        conditions(&hook.member("matchConditions"), errors);
        review_versions(&hook.member("admissionReviewVersions"), errors);
    }
    unique(&hooks, "name", errors);
}

fn qualified_name(name: &At<'_>, errors: &mut Vec<FieldError>) {
    required(name, errors);
    named(name, names::subdomain, errors);
    if !name.is_absent() && name.text().split('.').count() < 3 {
        errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
    }
}

/// Checks a rule: what it is about, and for which operations.
pub(super) fn rule(rule: &At<'_>, errors: &mut Vec<FieldError>) {
    let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (name, words) in lists {
        let list = rule.member(name);
        required(&list, errors);
        if list.items().count() > 1 && list.items().any(|item| item.text() == "*") {
            errors.push(list.invalid(format!("if '*' is present, must not specify other {words}")));
        }
    }
    rule.member("operations").items().for_each(|operation| one_of(&operation, &OPERATIONS, errors));
    rule.member("apiVersions").items().for_each(|version| required(&version, errors));
    resources(&rule.member("resources"), errors);
    one_of(&rule.member("scope"), &SCOPES, errors);
}

fn resources(list: &At<'_>, errors: &mut Vec<FieldError>) {
    required(list, errors);
    let mut wide: Vec<(&str, &str)> = Vec::new();
    for item in list.items() {
        required(&item, errors);
        let Some((resource, part)) = item.text().split_once('/') else { continue };
        for (wide_resource, wide_part) in &wide {
            let covers =
                (*wide_part == "*" && *wide_resource == resource) || (*wide_resource == "*" && *wide_part == part);
            if covers {
                let detail = format!("if '{wide_resource}/{wide_part}' is present, must not specify {}", item.text());
                errors.push(item.invalid(detail));
            }
        }
        if resource == "*" || part == "*" {
            wide.push((resource, part));
        }
    }
    let has = |wanted: &str| list.items().any(|item| item.text() == wanted);
    if list.items().count() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    let plain = list.items().any(|item| item.text() != "*" && !item.text().is_empty() && !item.text().contains('/'));
    if has("*") && plain {
        errors.push(list.invalid("if '*' is present, must not specify other resources without subresources"));
    }
}

/// Checks where a webhook is.
pub(super) fn client_config(config: &At<'_>, errors: &mut Vec<FieldError>) {
    let (url, service) = (config.member("url"), config.member("service"));
    if url.value.is_null() == service.value.is_null() {
        errors.push(config.missing("exactly one of url or service is required"));
    } else if url.value.is_null() {
        webhook_service(&service, errors);
    } else {
        webhook_url(&url, errors);
    }
}

/// Checks the address of a webhook.
fn webhook_url(url: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut refuse = |value: &str, detail: String| {
        errors.push(FieldError::invalid(url.path.clone(), value, detail));
    };
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", url.text()));
    if scheme != "https" {
        refuse(scheme, format!("'https' is the only allowed URL scheme{URL_FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        refuse(host, format!("host must be specified{URL_FORM}"));
    }
    if !user.is_empty() {
        refuse(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        refuse(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        refuse(query, "query parameters are not permitted in the URL".to_owned());
    }
}

/// Checks the Service of a webhook.
fn webhook_service(service: &At<'_>, errors: &mut Vec<FieldError>) {
    required(&service.member("name"), errors);
    required(&service.member("namespace"), errors);
    port(&service.member("port"), errors);
    let path = service.member("path");
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    let Some(steps) = text.strip_prefix('/') else { return errors.push(path.invalid("must start with a '/'")) };
    for (index, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        let problems = names::subdomain(step).into_iter();
        errors.extend(problems.map(|problem| path.invalid(format!("segment[{index}]: {problem}"))));
    }
}

/// Checks the conditions under which a webhook or a policy is about a request.
pub(super) fn conditions(list: &At<'_>, errors: &mut Vec<FieldError>) {
    if list.items().count() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(list.path.clone(), list.items().count(), CONDITIONS_MAX as u64));
    }
    for condition in list.items() {
        let (expression, name) = (condition.member("expression"), condition.member("name"));
        if expression.text().trim().is_empty() {
            errors.push(expression.missing(""));
        }
        required(&name, errors);
        named(&name, names::qualified, errors);
    }
    unique(list, "name", errors);
}

fn review_versions(versions: &At<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_absent() {
        return errors.push(versions.missing("must specify one of v1, v1beta1"));
    }
    let mut seen = std::collections::HashSet::new();
    for version in versions.items() {
        if seen.insert(version.text()) {
            named(&version, names::label_1035, errors);
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if !versions.items().any(|version| matches!(version.text(), "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}
