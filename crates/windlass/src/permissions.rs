//! The check of permissions: what the operator may not do is named, with the rule to add, and with what adds it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, sleep_until};
use windlass_runtime::tap::{Right, Tap};
use windlass_runtime::{Check, Namespaces};

use crate::manifests::role_name;
use crate::rbac::{Need, Scope, covers, rules};

/// Between two checks while something is missing, and at least between any two.
const RECHECK: Duration = Duration::from_secs(15);
/// Between two checks while all is there. A call that is refused in between is followed by a check, too.
const RECHECK_COMPLETE: Duration = Duration::from_secs(300);
/// In how many namespaces is looked; those of one operator are likely to be alike.
const NAMESPACES_MAX: usize = 32;
/// How many rights are asked for one by one.
const REVIEWS_MAX: usize = 256;

/// What is to be allowed, and where.
pub(crate) struct Asked {
    /// The operator's name.
    pub(crate) operator: String,
    /// What it needs.
    pub(crate) needs: Vec<Need>,
    /// The namespaces that it serves.
    pub(crate) namespaces: Namespaces,
    /// Its own namespace.
    pub(crate) own: String,
}

/// A right that is not there, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lack {
    need: Need,
    namespace: Option<String>,
}

/// Checks for as long as the operator runs, and lets `check` say what is missing.
pub(crate) async fn watch(client: Client, tap: Tap, asked: Asked, check: Check) {
    let (mut refused, mut was_complete, mut told) = (tap.refused(), false, BTreeSet::new());
    loop {
        refused.mark_unchanged();
        let checked = Instant::now();
        let pause = match missing(&client, &asked).await {
            Ok(missing) if missing.is_empty() => {
                if !was_complete {
                    tracing::info!("Permissions are complete");
                }
                tell_undeclared(&tap, &asked.needs, &mut told);
                was_complete = true;
                check.well();
                RECHECK_COMPLETE
            }
            Ok(missing) => {
                let advice = asked.advice(&missing);
                let what = if was_complete { "Permissions were taken away" } else { "Permissions are missing" };
                tracing::error!("{what}; {advice}");
                was_complete = false;
                check.trouble(advice);
                RECHECK
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::warn!(error = %status.message, "Cannot check permissions: it is not allowed to ask");
                check.well();
                RECHECK_COMPLETE
            }
            Err(error) => {
                // Not known is not well: it is asked again, and readiness says so meanwhile.
                tracing::warn!(%error, "Cannot check permissions");
                check.trouble(format!("cannot ask what is allowed: {error}"));
                RECHECK
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = refused.changed() => sleep_until(checked + RECHECK).await,
        }
    }
}

/// Says once of each right that was refused and that nothing declares how to declare it.
fn tell_undeclared(tap: &Tap, needs: &[Need], told: &mut BTreeSet<Right>) {
    for right in tap.rights().refused() {
        let is_declared = needs.iter().any(|need| need.right == *right);
        if !is_declared && told.insert(right.clone()) {
            let Right { group, resource, verb } = right;
            tracing::error!(
                "The API refused to {right}, which the operator does not declare: add .allow({group:?}, {resource:?}, &[{verb:?}]) to it"
            );
        }
    }
}

async fn missing(client: &Client, asked: &Asked) -> Result<Vec<Lack>, kube::Error> {
    let of = |scope: Scope| asked.needs.iter().filter(move |need| need.scope == scope);
    let mut lacks = Vec::new();
    let mut everywhere: Vec<&Need> = of(Scope::Cluster).collect();
    let mut places: Vec<(String, Vec<&Need>)> = vec![(asked.own.clone(), of(Scope::Own).collect())];
    match asked.namespaces.names() {
        None => everywhere.extend(of(Scope::Served)),
        Some(names) => {
            let each = |name: String| (name, of(Scope::Served).collect());
            places.extend(names.into_iter().take(NAMESPACES_MAX).map(each));
        }
    }
    for need in everywhere.into_iter().take(REVIEWS_MAX) {
        if !is_allowed(client, need, None).await? {
            lacks.push(Lack { need: need.clone(), namespace: None });
        }
    }
    for (namespace, needs) in places.into_iter().filter(|(_, needs)| !needs.is_empty()) {
        for need in missing_in(client, &namespace, &needs).await? {
            lacks.push(Lack { need, namespace: Some(namespace.clone()) });
        }
    }
    Ok(lacks)
}

/// Asks once for all rules of a namespace; one by one for what is not among them, if the API says that there may be more.
async fn missing_in(client: &Client, namespace: &str, needs: &[&Need]) -> Result<Vec<Need>, kube::Error> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) },
        ..SelfSubjectRulesReview::default()
    };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    let status = answer.status.unwrap_or_default();
    let lacking: Vec<Need> = lacking(needs, &status).into_iter().cloned().collect();
    if !status.incomplete {
        return Ok(lacking);
    }
    let mut missing = Vec::new();
    for need in lacking.into_iter().take(REVIEWS_MAX) {
        if !is_allowed(client, &need, Some(namespace)).await? {
            missing.push(need);
        }
    }
    Ok(missing)
}

/// The needs that no rule covers.
fn lacking<'a>(needs: &[&'a Need], status: &SubjectRulesReviewStatus) -> Vec<&'a Need> {
    let granted: Vec<PolicyRule> = (status.resource_rules.iter())
        .map(|rule| PolicyRule {
            api_groups: rule.api_groups.clone(),
            resources: rule.resources.clone(),
            resource_names: rule.resource_names.clone(),
            verbs: rule.verbs.clone(),
            ..PolicyRule::default()
        })
        .collect();
    let has = |need: &Need, name: Option<&str>| granted.iter().any(|rule| covers(rule, &need.right, name));
    let is_lacking = |need: &&&Need| match need.names.as_slice() {
        [] => !has(need, None),
        names => !names.iter().all(|name| has(need, Some(name))),
    };
    needs.iter().filter(is_lacking).copied().collect()
}

async fn is_allowed(client: &Client, need: &Need, namespace: Option<&str>) -> Result<bool, kube::Error> {
    let names: Vec<Option<&String>> =
        if need.names.is_empty() { vec![None] } else { need.names.iter().map(Some).collect() };
    for name in names {
        let review = review(&need.right, namespace, name);
        let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn review(right: &Right, namespace: Option<&str>, name: Option<&String>) -> SelfSubjectAccessReview {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
        None => (right.resource.clone(), None),
    };
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(right.verb.clone()),
                group: Some(right.group.clone()),
                resource: Some(resource),
                subresource,
                namespace: namespace.map(Into::into),
                name: name.cloned(),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

impl Asked {
    /// The rules that would grant what is missing, by the role that they belong in, and the command that adds them.
    fn advice(&self, missing: &[Lack]) -> String {
        let mut roles: Vec<(String, Vec<&Need>)> = Vec::new();
        for lack in missing {
            let name = role_name(&self.operator, lack.need.part);
            let role = match &lack.namespace {
                None => format!("ClusterRole {name}"),
                Some(namespace) => format!("Role {name} of namespace {namespace}"),
            };
            match roles.iter_mut().find(|(known, _)| *known == role) {
                Some((_, needs)) => needs.push(&lack.need),
                None => roles.push((role, vec![&lack.need])),
            }
        }
        let mut words: Vec<String> = roles
            .into_iter()
            .map(|(role, needs)| {
                let rules: Vec<String> = rules(needs).iter().map(in_one_line).collect();
                format!("add to the rules of {role}: {}", rules.join(", "))
            })
            .collect();
        words.push(format!("or run: {}", self.command()));
        words.join("; ")
    }

    /// What prints all roles, for whoever may change them.
    fn command(&self) -> String {
        let served = self.namespaces.names().filter(|names| !names.is_empty());
        let served = served.map(|names| names.into_iter().collect::<Vec<_>>().join(","));
        let served = served.map(|names| format!(" --watch-namespace {names}")).unwrap_or_default();
        format!("{} rbac --namespace {}{served} | kubectl apply -f -", self.operator, self.own)
    }
}

/// A rule as YAML in one line, which can be pasted after a dash.
fn in_one_line(rule: &PolicyRule) -> String {
    let list = |words: &[String]| format!("{words:?}");
    let names = rule.resource_names.as_deref().map(|names| format!(", resourceNames: {}", list(names)));
    format!(
        "{{apiGroups: {}, resources: {}{}, verbs: {}}}",
        list(rule.api_groups.as_deref().unwrap_or_default()),
        list(rule.resources.as_deref().unwrap_or_default()),
        names.unwrap_or_default(),
        list(&rule.verbs)
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authorization::v1::ResourceRule;

    use super::*;

    fn need(group: &str, resource: &str, verb: &str, names: &[&str]) -> Need {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Need { names, ..Need::new(Right::new(group, resource, verb), Scope::Served, "a test asks") }
    }

    fn asked(namespaces: Namespaces) -> Asked {
        Asked { operator: "op".into(), needs: Vec::new(), namespaces, own: "system".into() }
    }

    #[test]
    fn advice_is_rules_that_can_be_pasted_and_a_command_that_can_be_run() {
        let lack = |need: Need, namespace: Option<&str>| Lack { need, namespace: namespace.map(Into::into) };
        let missing = [
            lack(need("apps", "deployments", "patch", &[]), None),
            lack(need("apps", "deployments", "create", &[]), None),
            lack(need("", "secrets", "get", &["keys"]), Some("a")),
        ];
        assert_eq!(
            asked(Namespaces::all()).advice(&missing),
            r#"add to the rules of ClusterRole op: {apiGroups: ["apps"], resources: ["deployments"], verbs: ["create", "patch"]}; "#
                .to_owned()
                + r#"add to the rules of Role op of namespace a: {apiGroups: [""], resources: ["secrets"], resourceNames: ["keys"], verbs: ["get"]}; "#
                + "or run: op rbac --namespace system | kubectl apply -f -"
        );
        let command = asked(Namespaces::only(["b", "a"])).command();
        assert_eq!(command, "op rbac --namespace system --watch-namespace a,b | kubectl apply -f -");
    }

    #[test]
    fn one_answer_for_a_namespace_tells_what_is_lacking() {
        let rule = |resource: &str, verbs: &[&str], names: Option<&str>| ResourceRule {
            api_groups: Some(vec!["".into()]),
            resources: Some(vec![resource.into()]),
            resource_names: names.map(|name| vec![name.to_owned()]),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        };
        let status = SubjectRulesReviewStatus {
            resource_rules: vec![rule("pods", &["get", "list"], None), rule("secrets", &["get"], Some("keys"))],
            ..SubjectRulesReviewStatus::default()
        };
        let all = [
            need("", "pods", "list", &[]),
            need("", "pods", "delete", &[]),
            need("", "secrets", "get", &["keys"]),
            need("", "secrets", "get", &["keys", "more"]),
            need("", "secrets", "get", &[]),
        ];
        let all: Vec<&Need> = all.iter().collect();
        assert_eq!(lacking(&all, &status), [all[1], all[3], all[4]]);
    }
}
