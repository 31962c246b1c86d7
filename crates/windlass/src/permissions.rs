//! The check at start: what the operator may not do is named, with the rule to add.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::{Api, Client};
use windlass_runtime::{Check, Namespaces};

/// Between two checks while something is missing.
const RECHECK: Duration = Duration::from_secs(15);

/// One thing to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    verb: String,
    group: String,
    resource: String,
}

/// Checks `rules` until all are granted, and lets `check` say what is missing meanwhile.
pub(crate) async fn watch(client: Client, rules: Vec<PolicyRule>, namespaces: Namespaces, check: Check) {
    loop {
        match missing_anywhere(&client, &rules, &namespaces).await {
            Ok(missing) if missing.is_empty() => {
                tracing::info!("Permissions are complete");
                return check.well();
            }
            Ok(missing) => {
                let advice = advice(&missing);
                tracing::error!("Permissions are missing; add to the operator's role: {advice}");
                check.trouble(format!("add to the operator's role: {advice}"));
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::warn!(error = %status.message, "Cannot check permissions: it is not allowed to ask");
                return check.well();
            }
            Err(error) => {
                // Not known is not well: it is asked again, and readiness says so meanwhile.
                tracing::warn!(%error, "Cannot check permissions");
                check.trouble(format!("cannot ask what is allowed: {error}"));
            }
        }
        tokio::time::sleep(RECHECK).await;
    }
}

async fn missing_anywhere(
    client: &Client,
    rules: &[PolicyRule],
    namespaces: &Namespaces,
) -> Result<Vec<Need>, kube::Error> {
    let Some(names) = namespaces.names() else { return missing(client, rules, None).await };
    let mut all = Vec::new();
    for name in names {
        let here = missing(client, rules, Some(&name)).await?;
        all.extend(here.into_iter().filter(|need| !all.contains(need)).collect::<Vec<_>>());
    }
    Ok(all)
}

async fn missing(client: &Client, rules: &[PolicyRule], namespace: Option<&str>) -> Result<Vec<Need>, kube::Error> {
    let mut missing = Vec::new();
    for need in rules.iter().flat_map(needs) {
        if !is_allowed(client, &need, namespace).await? {
            missing.push(need);
        }
    }
    Ok(missing)
}

async fn is_allowed(client: &Client, need: &Need, namespace: Option<&str>) -> Result<bool, kube::Error> {
    let (resource, subresource) = match need.resource.split_once('/') {
        Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
        None => (need.resource.clone(), None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(need.verb.clone()),
                group: Some(need.group.clone()),
                resource: Some(resource),
                subresource,
                namespace: namespace.map(Into::into),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn needs(rule: &PolicyRule) -> Vec<Need> {
    let mut needs = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            let need = |verb: &String| Need { verb: verb.clone(), group: group.clone(), resource: resource.clone() };
            needs.extend(rule.verbs.iter().map(need));
        }
    }
    needs
}

/// The rules that would grant what is missing, in the form of a role.
fn advice(missing: &[Need]) -> String {
    let mut rules: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for need in missing {
        match rules.iter_mut().find(|(group, resource, _)| *group == need.group && *resource == need.resource) {
            Some((_, _, verbs)) => verbs.push(&need.verb),
            None => rules.push((&need.group, &need.resource, vec![&need.verb])),
        }
    }
    let words = rules.iter().map(|(group, resource, verbs)| {
        format!("{{apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: {verbs:?}}}")
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_rule_that_can_be_pasted() {
        let need =
            |verb: &str, resource: &str| Need { verb: verb.into(), group: "apps".into(), resource: resource.into() };
        let advice = advice(&[need("create", "deployments"), need("patch", "deployments"), need("get", "replicasets")]);
        assert_eq!(
            advice,
            r#"{apiGroups: ["apps"], resources: ["deployments"], verbs: ["create", "patch"]}, {apiGroups: ["apps"], resources: ["replicasets"], verbs: ["get"]}"#
        );
    }
}
