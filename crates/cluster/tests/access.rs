//! Who may do what in a running cluster, and what admission makes of the objects they send.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role};
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_apiserver::auth::User;
use windlass_cluster::{Cluster, ClusterConfig, Profile};

async fn cluster(profile: Profile) -> Cluster {
    Cluster::start(ClusterConfig::in_memory(profile)).await.unwrap()
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn refusal<T: std::fmt::Debug>(outcome: kube::Result<T>) -> String {
    match outcome {
        Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
        other => panic!("not refused: {other:?}"),
    }
}

async fn create<K>(api: &Api<K>, value: Value) -> kube::Result<K>
where
    K: kube::Resource + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &object(value)).await
}

fn bind_all(name: &str, user: &str, verbs: &[&str], resources: &[&str]) -> [Value; 2] {
    let rule = json!({"verbs": verbs, "apiGroups": ["", "rbac.authorization.k8s.io"], "resources": resources});
    [
        json!({"metadata": {"name": name}, "rules": [rule]}),
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }),
    ]
}

async fn grant(admin: &Client, user: &str, verbs: &[&str], resources: &[&str]) {
    let name = format!("{user}-{}", verbs.join("-"));
    let [role, binding] = bind_all(&name, user, verbs, resources);
    create(&Api::<ClusterRole>::all(admin.clone()), role).await.unwrap();
    create(&Api::<ClusterRoleBinding>::all(admin.clone()), binding).await.unwrap();
}

#[tokio::test]
async fn rights_count_from_the_moment_they_are_acknowledged() {
    let cluster = cluster(Profile::Bare).await;
    let ann = cluster.client_of(User::new("ann", ["people"]));
    let maps: Api<ConfigMap> = Api::namespaced(ann, "default");
    assert_eq!(
        refusal(maps.list(&Default::default()).await),
        "403 configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
         \"default\""
    );
    grant(&cluster.client(), "ann", &["list"], &["configmaps"]).await;
    maps.list(&Default::default()).await.unwrap();
    assert!(refusal(create(&maps, json!({"metadata": {"name": "a"}})).await).starts_with("403 "));
    cluster.shutdown().await;
}

#[tokio::test]
async fn nobody_grants_more_than_they_hold() {
    let cluster = cluster(Profile::Bare).await;
    let everything = ["get", "list", "create"];
    grant(&cluster.client(), "ann", &everything, &["configmaps", "roles", "clusterrolebindings"]).await;
    let ann = cluster.client_of(User::new("ann", ["people"]));
    let roles: Api<Role> = Api::namespaced(ann.clone(), "default");
    let role = |name: &str, verb: &str| {
        json!({
            "metadata": {"name": name},
            "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["configmaps"]}],
        })
    };
    create(&roles, role("fine", "get")).await.unwrap();
    let refused = refusal(create(&roles, role("greedy", "delete")).await);
    assert!(refused.contains("is attempting to grant RBAC permissions not currently held"), "{refused}");
    let [_, mut binding] = bind_all("grab", "ann", &[], &[]);
    binding["roleRef"]["name"] = json!("cluster-admin");
    let refused = refusal(create(&Api::<ClusterRoleBinding>::all(ann), binding).await);
    assert!(refused.contains("not currently held"), "{refused}");
    cluster.shutdown().await;
}

#[tokio::test]
async fn impersonation_needs_its_right_and_changes_the_user() {
    let cluster = cluster(Profile::Bare).await;
    let ask = async |user: &str| {
        let client = cluster.client_of(User::new(user, ["people"]));
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("content-type", "application/json")
            .header("impersonate-user", "bob")
            .body(body.to_string().into_bytes())
            .unwrap();
        client.request::<Value>(request).await
    };
    let refused = refusal(ask("ann").await);
    assert_eq!(
        refused,
        "403 users \"bob\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    grant(&cluster.client(), "ann", &["impersonate"], &["users"]).await;
    let answered = ask("ann").await.unwrap();
    assert_eq!(answered["status"]["userInfo"], json!({"username": "bob", "groups": ["system:authenticated"]}));
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_pod_gets_what_a_cluster_gives_to_pods() {
    let cluster = cluster(Profile::Gc).await;
    let client = cluster.client();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some()).await.unwrap();
    let ranges: Api<LimitRange> = Api::namespaced(client.clone(), "default");
    let limit =
        json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "2"}});
    create(&ranges, json!({"metadata": {"name": "usual"}, "spec": {"limits": [limit]}})).await.unwrap();

    let pods: Api<Pod> = Api::namespaced(client, "default");
    let pod = create(
        &pods,
        json!({
            "metadata": {"name": "web"},
            "spec": {"priorityClassName": "system-node-critical", "containers": [{"name": "a", "image": "host"}]},
        }),
    )
    .await
    .unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!(spec.service_account_name.as_deref(), Some("default"));
    assert_eq!(spec.priority, Some(2_000_001_000));
    assert_eq!(spec.tolerations.unwrap().len(), 2);
    assert!(spec.volumes.unwrap()[0].name.starts_with("kube-api-access-"));
    let resources = spec.containers[0].resources.clone().unwrap();
    assert_eq!(resources.requests.unwrap()["cpu"].0, "100m");

    let greedy = json!({
        "metadata": {"name": "greedy"},
        "spec": {"containers": [{"name": "a", "image": "host", "resources": {"limits": {"cpu": "3"}}}]},
    });
    assert_eq!(
        refusal(create(&pods, greedy).await),
        "403 pods \"greedy\" is forbidden: maximum cpu usage per Container is 2, but limit is 3"
    );
    cluster.shutdown().await;
}

#[tokio::test]
async fn namespaces_begin_before_their_content_and_some_never_end() {
    let cluster = cluster(Profile::Bare).await;
    let client = cluster.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let refused = refusal(namespaces.delete("kube-system", &DeleteParams::default()).await);
    assert_eq!(refused, "403 namespaces \"kube-system\" is forbidden: this namespace may not be deleted");

    let maps: Api<ConfigMap> = Api::namespaced(client, "red");
    let map = || json!({"metadata": {"name": "a"}});
    assert_eq!(refusal(create(&maps, map()).await), "404 namespaces \"red\" not found");
    create(&namespaces, json!({"metadata": {"name": "red"}})).await.unwrap();
    create(&maps, map()).await.unwrap();
    // Without a controller that empties it, the namespace stays in its end.
    namespaces.delete("red", &DeleteParams::default()).await.unwrap();
    let refused = refusal(create(&maps, json!({"metadata": {"name": "b"}})).await);
    assert_eq!(
        refused,
        "403 configmaps \"b\" is forbidden: unable to create new content in namespace red because it is being terminated"
    );
    assert_eq!(maps.get("a").await.unwrap().name_any(), "a");
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_new_part_of_a_sum_counts() {
    let cluster = cluster(Profile::Bare).await;
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    let part = json!({
        "metadata": {"name": "part", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}],
    });
    create(&roles, part).await.unwrap();
    let reached = |name: &'static str| {
        await_condition(roles.clone(), name, |role: Option<&ClusterRole>| {
            let rules = role.and_then(|role| role.rules.as_ref()).into_iter().flatten();
            rules.into_iter().any(|rule| rule.resources.as_ref().is_some_and(|all| all.contains(&"widgets".to_owned())))
        })
    };
    reached("view").await.unwrap();
    reached("admin").await.unwrap();
    cluster.shutdown().await;
}
