//! When a container is started again, by a policy of its own.

use super::cursor::{At, set_one_of};
use crate::FieldError;

const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const RULES_MAX: u64 = 20;
const CODES_MAX: u64 = 255;

/// Checks the policy of a container and the rules that go before it.
pub(super) fn rules(container: &At<'_>, errors: &mut Vec<FieldError>) {
    let (policy, rules) = (container.member("restartPolicy"), container.member("restartPolicyRules"));
    if !policy.is_set() && rules.is_absent() {
        return;
    }
    if !policy.is_set() {
        errors.push(policy.missing("must specify restartPolicy when restart rules are used"));
        // Nobody looks at the rules of an init container then.
        if container.path.contains("initContainers[") {
            return;
        }
    }
    set_one_of(&policy, &POLICIES, errors);
    too_many(&rules, RULES_MAX, errors);
    for rule in rules.items() {
        let (action, codes) = (rule.member("action"), rule.member("exitCodes"));
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.unsupported(&ACTIONS));
        }
        if !codes.is_set() {
            errors.push(codes.missing("must be specified"));
            continue;
        }
        let operator = codes.member("operator");
        if !["In", "NotIn"].contains(&operator.text()) {
            errors.push(operator.unsupported(&["In", "NotIn"]));
        }
        too_many(&codes.member("values"), CODES_MAX, errors);
    }
}

/// A list has at most `max` items.
pub(super) fn too_many(list: &At<'_>, max: u64, errors: &mut Vec<FieldError>) {
    let count = list.items().count();
    if count as u64 > max {
        errors.push(FieldError::too_many(list.path.clone(), count, max));
    }
}
