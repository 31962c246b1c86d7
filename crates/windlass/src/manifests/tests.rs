//! Manifests of a small operator.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use serde_json::json;

use super::*;
use crate::prelude::{
    Deserialize, Desired, Hook, NoStatus, Operator, Outcome, Request, Resource, Schema, Serialize, Verdict, World,
};

/// A jar.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "kitchen.example.com", version = "v1", kind = "Jar", scale(".spec.size", ".status.size"))]
pub(crate) struct JarSpec {
    /// How large; "{{ this }}" is no template.
    pub(crate) size: u32,
}

pub(crate) struct Jars;

impl Operator for Jars {
    type Resource = Jar;

    fn desired(&self, _: &Jar, _: &World) -> Outcome<NoStatus> {
        Desired::new().settled()
    }
}

/// An operator with kinds in and outside of namespaces, and with a webhook.
pub(crate) fn app() -> crate::App<Jars> {
    let hook = Hook::validate(|_: &Jar, _: &Request<Jar>| Verdict::allow());
    crate::operator(Jars).version("1.2.3").owns::<ConfigMap>().watches::<Node>(|_| Vec::new()).webhook(hook)
}

fn options(program: &dyn Program, served: &[&str]) -> ManifestOptions {
    let watch_namespaces = served.iter().map(|name| (*name).to_owned()).collect();
    ManifestOptions { watch_namespaces, ..ManifestOptions::of(program) }
}

fn names(objects: &[Value], kind: &str) -> Vec<String> {
    let name = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().map(|namespace| format!("{namespace}/"));
        format!("{}{}", namespace.unwrap_or_default(), object["metadata"]["name"].as_str().unwrap_or_default())
    };
    objects.iter().filter(|object| object["kind"] == kind).map(name).collect()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Every resource that a role is about, with the verbs.
fn granted(role: &Value) -> BTreeSet<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let of = |rule: &Value| -> Vec<String> {
        let verbs = texts(&rule["verbs"]).join(",");
        texts(&rule["resources"]).iter().map(|resource| format!("{resource}: {verbs}")).collect()
    };
    role["rules"].as_array().into_iter().flatten().flat_map(of).collect()
}

#[test]
fn several_namespaces_have_a_role_each_and_the_cluster_none_for_what_is_in_them() {
    let app = app();
    let roles = permissions(&app, &options(&app, &["a", "b"]));
    let own =
        ["a/jar-operator", "b/jar-operator", "jar-system/jar-operator-leader", "jar-system/jar-operator-webhooks"];
    assert_eq!(names(&roles, "Role"), own);
    assert_eq!(names(&roles, "RoleBinding"), own);
    assert_eq!(names(&roles, "ClusterRole"), ["jar-operator", "jar-operator-webhooks"]);
    let cluster = granted(find(&roles, "ClusterRole", "jar-operator"));
    assert_eq!(cluster, BTreeSet::from(["nodes: get,list,watch".to_owned()]));
    let served = granted(find(&roles, "Role", "jar-operator"));
    assert!(served.contains("configmaps: get,list,watch,create,patch,delete"), "{served:?}");
    assert!(!served.iter().any(|right| right.starts_with("nodes")), "{served:?}");
}

#[test]
fn all_namespaces_take_one_role_of_the_cluster() {
    let app = app();
    let roles = permissions(&app, &options(&app, &[]));
    assert_eq!(names(&roles, "Role"), ["jar-system/jar-operator-leader", "jar-system/jar-operator-webhooks"]);
    let cluster = granted(find(&roles, "ClusterRole", "jar-operator"));
    assert!(cluster.contains("nodes: get,list,watch") && cluster.contains("jars: get,list,watch"), "{cluster:?}");
    let all = serde_json::to_string(&roles).unwrap();
    assert!(!all.contains('*'), "{all}");
}

#[test]
fn a_leader_has_a_right_to_its_own_lease_and_shards_to_theirs() {
    let app = app();
    let leases = |shards: Option<u32>| {
        let roles = permissions(&app, &ManifestOptions { shards, ..ManifestOptions::of(&app) });
        let rules = find(&roles, "Role", "jar-operator-leader")["rules"].as_array().unwrap().clone();
        rules.into_iter().filter(|rule| rule["resources"][0] == "leases").collect::<Vec<_>>()
    };
    let group = "coordination.k8s.io";
    assert_eq!(
        leases(None),
        [
            json!({"apiGroups": [group], "resources": ["leases"], "verbs": ["create"]}),
            json!({"apiGroups": [group], "resources": ["leases"], "resourceNames": ["jar-operator"],
                   "verbs": ["get", "list", "watch", "update"]}),
        ]
    );
    let all = json!(["get", "list", "watch", "create", "update", "delete"]);
    assert_eq!(leases(Some(4)), [json!({"apiGroups": [group], "resources": ["leases"], "verbs": all})]);
}

#[test]
fn who_may_view_or_edit_a_namespace_may_so_the_kind() {
    let app = app();
    let all = all(&app, &ManifestOptions::of(&app));
    let viewer = find(&all, "ClusterRole", "jar-operator-jars-viewer");
    assert_eq!(viewer["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"], "true");
    assert_eq!(
        granted(viewer),
        BTreeSet::from(["jars: get,list,watch", "jars/scale: get", "jars/status: get"].map(str::to_owned))
    );
    let editor = granted(find(&all, "ClusterRole", "jar-operator-jars-editor"));
    let expected = ["jars: create,update,patch,delete,deletecollection", "jars/scale: update,patch"];
    assert_eq!(editor, BTreeSet::from(expected.map(str::to_owned)));
}

#[test]
fn several_replicas_are_spread_and_not_taken_away_together() {
    let app = app();
    let one = all(&app, &ManifestOptions::of(&app));
    assert!(names(&one, "PodDisruptionBudget").is_empty());
    let two = all(&app, &ManifestOptions { replicas: 2, ..ManifestOptions::of(&app) });
    assert_eq!(find(&two, "PodDisruptionBudget", "jar-operator")["spec"]["maxUnavailable"], 1);
    let deployment = find(&two, "Deployment", "jar-operator");
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert!(deployment["spec"]["template"]["spec"]["topologySpreadConstraints"].is_array());
}

#[test]
fn labels_are_everywhere_but_in_what_never_changes() {
    let app = app();
    let labels = [("team".to_owned(), "blue".to_owned())].into();
    let all = all(&app, &ManifestOptions { labels, ..ManifestOptions::of(&app) });
    for object in all.iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
        assert_eq!(object["metadata"]["labels"]["team"], "blue", "{object}");
    }
    let deployment = find(&all, "Deployment", "jar-operator");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app.kubernetes.io/name": "jar-operator"}));
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["team"], "blue");
}

/// What the level `restricted` of the Pod security standards asks of a Pod with these kinds of fields.
fn offences(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |what: &str, holds: bool| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    expect("runAsNonRoot", pod["securityContext"]["runAsNonRoot"] == true);
    expect("seccompProfile", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault");
    let is_unset = |name: &str| pod[name].is_null();
    expect("host namespaces", ["hostNetwork", "hostPID", "hostIPC"].into_iter().all(is_unset));
    expect("volumes", pod["volumes"].is_null());
    for container in pod["containers"].as_array().into_iter().flatten() {
        let context = &container["securityContext"];
        expect("allowPrivilegeEscalation", context["allowPrivilegeEscalation"] == false);
        expect("capabilities", context["capabilities"] == json!({"drop": ["ALL"]}));
        expect("privileged", context["privileged"].is_null() && context["runAsUser"].is_null());
        expect(
            "host ports",
            container["ports"].as_array().into_iter().flatten().all(|port| port["hostPort"].is_null()),
        );
        expect("root file system", context["readOnlyRootFilesystem"] == true);
    }
    found
}

#[test]
fn the_pods_are_restricted_and_the_namespace_takes_no_others() {
    let app = app();
    let all = all(&app, &ManifestOptions::of(&app));
    let pod = &find(&all, "Deployment", "jar-operator")["spec"]["template"]["spec"];
    assert_eq!(offences(pod), [] as [&str; 0]);
    assert_eq!(find(&all, "Namespace", "jar-system")["metadata"]["labels"][POD_SECURITY], "restricted");
}

#[test]
fn secrets_of_the_whole_cluster_are_asked_for_only_if_they_are_declared() {
    let wide = |roles: &[Value]| {
        let is_wide = |role: &&Value| granted(role).iter().any(|right| right.starts_with("secrets:"));
        roles.iter().filter(|role| role["kind"] == "ClusterRole").filter(is_wide).count()
    };
    let app = app();
    assert_eq!(wide(&permissions(&app, &ManifestOptions::of(&app))), 0);
    let reads = crate::operator(Jars).reads::<Secret>();
    assert_eq!(wide(&permissions(&reads, &ManifestOptions::of(&reads))), 1);
    assert_eq!(wide(&permissions(&reads, &options(&reads, &["a"]))), 0);
}

#[test]
#[should_panic(expected = "an operator has no wildcard")]
fn a_wildcard_is_refused() {
    let _ = crate::operator(Jars).allow("apps", "*", &["get"]);
}

#[test]
fn kustomize_gets_a_base_of_all_objects_and_an_overlay_that_stays_as_it_is() {
    let app = app();
    let options = options(&app, &["a", "b"]);
    let files = kustomize::files(&app, &options).unwrap();
    let base: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(base.len(), files.len(), "two objects in one file");
    assert_eq!(files.len(), all(&app, &options).len() + 2);
    let folder = std::env::temp_dir().join(format!("windlass-kustomize-{}", std::process::id()));
    let write = |files: &[File]| output::write(&folder, kustomize::BASE, kustomize::MARK, files);
    write(&files).unwrap();
    let overlay = folder.join("overlays/example/kustomization.yaml");
    std::fs::write(&overlay, "mine").unwrap();
    std::fs::write(folder.join("base/theirs.yaml"), "not made here").unwrap();
    let fewer = kustomize::files(&app, &ManifestOptions::of(&app)).unwrap();
    write(&fewer).unwrap();
    assert_eq!(std::fs::read_to_string(&overlay).unwrap(), "mine");
    assert!(folder.join("base/theirs.yaml").is_file() && !folder.join("base/role-a-jar-operator.yaml").exists());
    std::fs::write(folder.join("base/kustomization.yaml"), "by hand").unwrap();
    let said = write(&fewer).unwrap_err().to_string();
    assert!(said.contains("was not made by this command"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_chart_leaves_no_gap_unnamed() {
    let app = app();
    for file in helm::files(&app, &ManifestOptions::of(&app), "1.2.3") {
        assert!(!file.text.contains("windlass-namespace"), "{}: {}", file.path, file.text);
        assert!(!file.text.contains("%indent%") && !file.text.contains("%deeper%"), "{}: {}", file.path, file.text);
        assert!(!file.text.contains('\u{1}'), "{}: {}", file.path, file.text);
    }
}
