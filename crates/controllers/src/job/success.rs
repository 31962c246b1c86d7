//! When an indexed Job has succeeded early, by its success policy.

use k8s_openapi::api::batch::v1::{Job, SuccessPolicyRule};

use super::indexes::{self, Indexes};

/// The number of the first rule of the policy that the completed indexes satisfy.
pub(crate) fn satisfied(job: &Job, completed: &Indexes) -> Option<usize> {
    let policy = job.spec.as_ref()?.success_policy.as_ref()?;
    policy.rules.iter().position(|rule| holds(rule, completed))
}

fn holds(rule: &SuccessPolicyRule, completed: &Indexes) -> bool {
    let listed = rule.succeeded_indexes.as_deref().map(indexes::parse);
    let done = listed.as_ref().map_or(completed.len(), |listed| listed.intersection(completed).count());
    let needed = rule.succeeded_count.and_then(|count| usize::try_from(count).ok());
    match (needed, listed) {
        (Some(needed), _) => done >= needed,
        (None, Some(listed)) => done == listed.len(),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_rule_asks_for_indexes_or_a_number_of_them() {
        let check = |rules: Value, completed: &str, expect: Option<usize>| {
            let job = json!({"spec": {"template": {}, "successPolicy": {"rules": rules}}});
            let job: Job = serde_json::from_value(job).unwrap();
            assert_eq!(satisfied(&job, &indexes::parse(completed)), expect, "{rules} {completed}");
        };
        check(json!([{"succeededIndexes": "0,2"}]), "0", None);
        check(json!([{"succeededIndexes": "0,2"}]), "0-2", Some(0));
        check(json!([{"succeededCount": 2}]), "1", None);
        check(json!([{"succeededCount": 2}]), "1,7", Some(0));
        check(json!([{"succeededIndexes": "0-3", "succeededCount": 2}]), "3,7", None);
        check(json!([{"succeededIndexes": "0"}, {"succeededIndexes": "0-3", "succeededCount": 2}]), "2,3", Some(1));
    }
}
