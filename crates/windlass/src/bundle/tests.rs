//! Bundles of a small operator.

use std::path::{Path, PathBuf};

use super::*;
use crate::manifests::tests::{Jar, JarSpec, app};
use crate::prelude::{Hook, Request, Versions};

fn bundle() -> Bundle {
    let app = app();
    let upgrades = Upgrades { replaces: Some("1.2.2".into()), skips: Vec::new(), skip_range: Some("<1.2.3".into()) };
    let standing = Standing { version: "1.2.3".into(), upgrades, channels: vec!["stable".into(), "fast".into()] };
    Bundle::of(&app, &ManifestOptions::of(&app), standing).unwrap()
}

/// A folder of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("windlass-bundle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_bundle_comes_back_as_it_was_from_a_folder_and_from_an_archive() {
    let (bundle, scratch) = (bundle(), Scratch::new("both"));
    for path in [scratch.at("folder"), scratch.at("bundle.tar")] {
        bundle.write(&path).unwrap();
        bundle.write(&path).unwrap();
        let read = Bundle::read(&path).unwrap();
        assert_eq!(read, bundle);
        assert_eq!(read.digest(), bundle.digest());
        let app = app();
        assert_eq!(read.manifests().unwrap(), crate::manifests::all(&app, &ManifestOptions::of(&app)));
    }
}

#[test]
fn the_same_operator_makes_the_same_bytes() {
    assert_eq!(bundle().archive(), bundle().archive());
}

#[test]
fn a_bundle_says_what_it_is() {
    let description = bundle().description;
    let api = |api: &Api| format!("{}/{} {}", api.group, api.version, api.kind);
    assert_eq!(description.provides.iter().map(api).collect::<Vec<_>>(), ["kitchen.example.com/v1 Jar"]);
    assert_eq!(description.requires, []);
    assert_eq!(description.images, ["jar-operator:1.2.3"]);
    assert_eq!((description.capability.level, description.not_registry), (1, None));
    assert_eq!(description.permissions.weighty, ["get nodes", "list nodes", "watch nodes"]);
}

#[test]
fn managers_of_others_find_what_they_look_for() {
    let bundle = bundle();
    let text = |path: &str| String::from_utf8(bundle.files[path].clone()).unwrap();
    let read = |path: &str| -> serde_json::Value { serde_saphyr::from_str(&text(path)).unwrap() };
    let annotations = read("metadata/annotations.yaml");
    let of = |key: &str| annotations["annotations"][format!("operators.operatorframework.io.bundle.{key}")].clone();
    assert_eq!((of("mediatype.v1"), of("package.v1")), ("registry+v1".into(), "jar-operator".into()));
    assert_eq!((of("channels.v1"), of("channel.default.v1")), ("stable,fast".into(), "stable".into()));
    let version = read("manifests/jar-operator.clusterserviceversion.yaml");
    assert_eq!(version["metadata"]["name"], "jar-operator.v1.2.3");
    assert_eq!(version["metadata"]["annotations"]["olm.skipRange"], "<1.2.3");
    let spec = &version["spec"];
    assert_eq!(spec["replaces"], "jar-operator.v1.2.2");
    assert_eq!(spec["customresourcedefinitions"]["owned"][0]["name"], "jars.kitchen.example.com");
    let install = &spec["install"]["spec"];
    assert_eq!(install["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["args"][1], "--leader-elect");
    assert_eq!(install["clusterPermissions"][0]["rules"][0]["resources"][0], "nodes");
    assert_eq!(install["permissions"][0]["serviceAccountName"], "jar-operator");
    let container = &install["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    let certificates = "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs";
    assert!(container["args"].as_array().unwrap().contains(&certificates.into()), "{container}");
    assert_eq!(container["ports"][2]["containerPort"], 9443);
    let webhook = &spec["webhookdefinitions"][0];
    assert_eq!(webhook["type"], "ValidatingAdmissionWebhook");
    assert_eq!(webhook["generateName"], "validate.jars.kitchen.example.com");
    assert_eq!(webhook["deploymentName"], install["deployments"][0]["name"]);
    assert_eq!(webhook["targetPort"], container["ports"][2]["containerPort"]);
    assert_eq!(webhook["rules"][0]["resources"][0], "jars");
    let paths: Vec<String> = app().registration(Vec::new()).hooks.iter().map(|hook| hook.path()).collect();
    assert_eq!(paths, [webhook["webhookPath"].as_str().unwrap()]);
    let granted = text("manifests/jar-operator.clusterserviceversion.yaml");
    assert!(!granted.contains("webhook-keys"), "the keys are the manager's");
    assert!(bundle.files.contains_key("manifests/jars.kitchen.example.com.crd.yaml"));
    let is_flat = |path: &String| path.matches('/').count() == 1;
    assert!(bundle.files.keys().all(is_flat), "{:?}", bundle.files.keys());
}

mod v1beta1 {
    use crate::prelude::{Deserialize, Resource, Schema, Serialize};

    /// A jar as it was.
    #[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
    #[resource(group = "kitchen.example.com", version = "v1beta1", kind = "Jar")]
    pub(crate) struct JarSpec {
        pub(crate) size: u32,
    }
}

fn converting() -> Versions<Jar> {
    fn up(old: v1beta1::Jar) -> Jar {
        Jar { metadata: old.metadata, spec: JarSpec { size: old.spec.size }, status: old.status }
    }
    fn down(new: Jar) -> v1beta1::Jar {
        v1beta1::Jar { metadata: new.metadata, spec: v1beta1::JarSpec { size: new.spec.size }, status: new.status }
    }
    Versions::of::<v1beta1::Jar>().then(up, down)
}

#[test]
fn a_conversion_is_the_managers_to_announce_and_for_all_namespaces() {
    let app = app().versions(&converting());
    let standing = Standing { version: "1.2.3".into(), channels: vec!["stable".into()], ..Standing::default() };
    let bundle = Bundle::of(&app, &ManifestOptions::of(&app), standing).unwrap();
    assert_eq!(bundle.description.not_registry, None);
    let read = |path: &str| -> serde_json::Value {
        serde_saphyr::from_str(std::str::from_utf8(&bundle.files[path]).unwrap()).unwrap()
    };
    let spec = &read("manifests/jar-operator.clusterserviceversion.yaml")["spec"];
    let conversion = &spec["webhookdefinitions"][1];
    assert_eq!(conversion["type"], "ConversionWebhook");
    assert_eq!(conversion["conversionCRDs"][0], "jars.kitchen.example.com");
    assert_eq!(conversion["webhookPath"], "/convert");
    assert_eq!(spec["installModes"][0], serde_json::json!({"type": "OwnNamespace", "supported": false}));
    let definition = read("manifests/jars.kitchen.example.com.crd.yaml");
    assert_eq!(definition["spec"]["versions"].as_array().unwrap().len(), 2);
    assert!(definition["spec"]["conversion"].is_null(), "{definition}");
    let granted = serde_json::to_string(&spec["install"]["spec"]["clusterPermissions"]).unwrap();
    assert!(granted.contains("customresourcedefinitions/status"), "{granted}");
}

#[test]
fn what_this_form_has_no_place_for_is_said() {
    let hook = Hook::default(|_: &mut Jar, _: &Request<Jar>| {}).when("large", "object.spec.size > 3");
    let app = app().webhook(hook);
    let bundle = Bundle::of(&app, &ManifestOptions::of(&app), Standing::default()).unwrap();
    let why = bundle.description.not_registry.unwrap();
    assert!(why.contains("is asked under a condition"), "{why}");
    assert!(bundle.files.keys().all(|path| path.starts_with("windlass/")), "{:?}", bundle.files.keys());
}

#[test]
fn what_an_operator_does_follows_from_what_it_declares() {
    let does = bundle().description.capability.does;
    let expected = [
        "makes, repairs and removes ConfigMap",
        "is scaled by the scale of its resources",
        "refuses resources that cannot be served",
        "tells of itself by conditions, events, metrics, a dashboard and alerts",
    ];
    assert_eq!(does, expected);
}

fn refused(path: &Path) -> String {
    Bundle::read(path).unwrap_err().to_string()
}

#[test]
fn what_is_not_what_it_says_is_refused() {
    let (bundle, scratch) = (bundle(), Scratch::new("bad"));
    let folder = scratch.at("folder");
    bundle.write(&folder).unwrap();
    let manifests = folder.join(MANIFESTS);
    let text = std::fs::read_to_string(&manifests).unwrap();
    std::fs::write(&manifests, text.replace("replicas: 1", "replicas: 9")).unwrap();
    assert!(refused(&folder).contains("windlass/manifests.yaml is not the file that was described"));
    std::fs::write(&manifests, text).unwrap();
    std::fs::write(folder.join("manifests/more.yaml"), "").unwrap();
    assert!(refused(&folder).contains("manifests/more.yaml is not described"));
    std::fs::remove_file(folder.join("manifests/more.yaml")).unwrap();
    std::fs::remove_file(folder.join("metadata/annotations.yaml")).unwrap();
    assert!(refused(&folder).contains("metadata/annotations.yaml is described and not there"));

    let mut other = bundle.clone();
    other.description.provides.clear();
    other.write(&scratch.at("other.tar")).unwrap();
    assert!(refused(&scratch.at("other.tar")).contains("does not agree with itself"));
    let mut other = bundle.clone();
    other.description.format = 2;
    other.write(&scratch.at("new.tar")).unwrap();
    assert!(refused(&scratch.at("new.tar")).contains("is of form 2"));
    std::fs::write(scratch.at("empty.tar"), [0; 1024]).unwrap();
    assert!(refused(&scratch.at("empty.tar")).contains("is not a bundle"));
}

#[test]
fn an_archive_cannot_lead_out_of_itself() {
    let scratch = Scratch::new("paths");
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_link_name("/etc/passwd").unwrap();
    header.set_path(DESCRIPTION).unwrap();
    header.set_cksum();
    archive.append(&header, std::io::empty()).unwrap();
    std::fs::write(scratch.at("link.tar"), archive.into_inner().unwrap()).unwrap();
    assert!(refused(&scratch.at("link.tar")).contains("which no bundle may have"));

    let mut header = tar::Header::new_ustar();
    header.set_size(0);
    header.as_mut_bytes()[..9].copy_from_slice(b"../x/y.js");
    header.set_cksum();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append(&header, std::io::empty()).unwrap();
    std::fs::write(scratch.at("up.tar"), archive.into_inner().unwrap()).unwrap();
    assert!(refused(&scratch.at("up.tar")).contains("which no bundle may have"));
}

#[test]
fn what_is_no_bundle_is_not_replaced() {
    let scratch = Scratch::new("foreign");
    std::fs::write(scratch.at("precious"), "data").unwrap();
    let said = bundle().write(&scratch.0).unwrap_err().to_string();
    assert!(said.contains("is there and is no bundle"), "{said}");
    assert_eq!(std::fs::read_to_string(scratch.at("precious")).unwrap(), "data");
}
