//! The operator as its manifests let it be: an account, its roles, and the borders of namespaces.

use std::collections::BTreeSet;

use windlass::runtime::journal::Subject;
use windlass::runtime::tap::{Call, Right};
use windlass::{ManifestOptions, Program};
use windlass_apiserver::auth::User as Account;

use super::judge::Rules;
use super::session::Shown;
use crate::TestCluster;
use crate::manifests::account_groups;

/// Groups whose objects are questions and stay nowhere.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Gives the operator the roles of its manifests, and no others.
pub(crate) async fn grant(cluster: &TestCluster, program: &dyn Program) -> Account {
    let options = ManifestOptions::of(program);
    cluster.namespace(&options.namespace).await;
    cluster.apply(program.roles(&options)).await;
    let (name, groups) = account_groups(&options.namespace, program.name());
    Account::new(name, groups)
}

/// What to do about a call that was forbidden.
pub(crate) fn forbidden(call: &Call) -> String {
    let Right { group, resource, verb } = Right::of(call, call.verb);
    format!(
        "forbidden: the roles of the manifests do not let it {}; say .allow({group:?}, {resource:?}, &[{verb:?}])",
        Shown(call)
    )
}

/// Where a resource may reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders {
    /// Whether all is its own.
    is_cluster: bool,
    /// The namespaces that all resources may reach.
    open: BTreeSet<String>,
    /// The kinds without namespaces that they may write.
    open_kinds: BTreeSet<(String, String)>,
    /// The groups and plurals of kinds that live in namespaces.
    namespaced: BTreeSet<(String, String)>,
}

impl Borders {
    pub(crate) fn of(cluster: &TestCluster, program: &dyn Program, rules: &Rules) -> Self {
        let catalog = cluster.cluster().api().registry().catalog();
        let kinds = catalog.kinds().filter(|kind| kind.namespaced);
        let mut open = rules.reach.clone();
        open.insert(ManifestOptions::of(program).namespace);
        Self {
            is_cluster: rules.is_cluster,
            open,
            open_kinds: rules.reach_cluster.clone(),
            namespaced: kinds.map(|kind| (kind.group.clone(), kind.plural.clone())).collect(),
        }
    }

    /// What is wrong with a call that is made for `subject`.
    pub(crate) fn trespass(&self, subject: &Subject, call: &Call) -> Option<String> {
        if self.is_cluster {
            return None;
        }
        let home = subject.namespace.as_deref()?;
        let whose = format!("{} {home}/{}", subject.kind, subject.name);
        let kind = (call.group.clone(), call.resource.clone());
        match call.namespace.as_deref() {
            Some(namespace) if namespace == home || self.open.contains(namespace) => None,
            Some(_) => Some(format!("out of its namespace: {} for {whose}", Shown(call))),
            None if self.namespaced.contains(&kind) => {
                Some(format!("out of its namespace: {} of all namespaces for {whose}", Shown(call)))
            }
            None if !call.is_write() || QUESTIONS.contains(&call.group.as_str()) => None,
            None if self.open_kinds.contains(&kind) => None,
            None => Some(format!("out of its namespace: {}, which concerns all, for {whose}", Shown(call))),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn check(method: Method, path: &str, expected: Option<&str>) {
        let borders = Borders {
            is_cluster: false,
            open: BTreeSet::from(["shared".to_owned()]),
            open_kinds: BTreeSet::from([("".to_owned(), "persistentvolumes".to_owned())]),
            namespaced: BTreeSet::from([("".to_owned(), "secrets".to_owned())]),
        };
        let subject =
            Subject { kind: "Shop".into(), namespace: Some("home".into()), name: "s".into(), ..Subject::default() };
        let found = borders.trespass(&subject, &Call::parse(&method, path, None));
        let expected = expected.map(|what| format!("out of its namespace: {what} for Shop home/s"));
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn calls_stay_in_the_namespace_of_their_resource() {
        check(Method::GET, "/api/v1/namespaces/home/secrets/k", None);
        check(Method::GET, "/api/v1/namespaces/shared/secrets/k", None);
        check(Method::GET, "/api/v1/namespaces/other/secrets/k", Some("get secrets other/k"));
        check(Method::GET, "/api/v1/secrets", Some("list secrets of all namespaces"));
        check(Method::GET, "/api/v1/nodes", None);
        check(Method::POST, "/api/v1/persistentvolumes", None);
        check(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None);
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/r";
        check(Method::GET, role, None);
        check(Method::PATCH, role, Some("patch clusterroles r, which concerns all,"));
    }
}
