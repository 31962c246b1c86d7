//! What the derive makes of its attributes, compared with what was agreed. `UPDATE_SNAPSHOTS=1` agrees anew.

use std::path::Path;

use windlass::prelude::*;
use windlass::serde_json::{from_value, json, to_value};

/// A proxy before a service.
///
/// This paragraph is for readers of the code only.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "net.example.com", version = "v1beta2", kind = "EdgeProxy", status = EdgeProxyStatus, cluster)]
#[resource(short = "ep", short = "edge", category = "net", scale(".spec.replicas", ".status.replicas"))]
#[resource(column("Mode", path = ".spec.mode"), column("Ready", condition = "Ready"))]
#[resource(column("Weight", path = ".spec.weight", type = "number", priority = 1))]
#[resource(cel("self.spec.replicas < 5 || self.spec.mode == 'Fast'", message = "only fast proxies may be many"))]
#[serde(rename_all = "camelCase")]
pub struct EdgeProxySpec {
    /// How many.
    pub replicas: u16,
    /// How it works.
    pub mode: Mode,
    /// Its share of the load.
    pub weight: Option<f64>,
    /// Where requests go.
    #[serde(default)]
    pub backends: Vec<Backend>,
    /// Free for all.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Cannot change once set.
    #[schema(immutable)]
    pub zone: Option<String>,
}

/// How a proxy works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Mode {
    /// Without a cache.
    Fast,
    /// With one.
    Cached,
}

/// Where requests go.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// A name or an address.
    pub host_name: String,
    /// A number or a name.
    pub port: IntOrString,
}

/// What is known of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct EdgeProxyStatus {
    /// How many there are.
    pub replicas: u16,
}

#[test]
fn the_definition_is_as_agreed() {
    let actual = windlass::serde_json::to_string_pretty(&windlass::definition::<EdgeProxy>()).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/definition.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    assert_eq!(actual, std::fs::read_to_string(&path).unwrap(), "{} differs", path.display());
}

#[test]
fn an_object_is_read_and_written_as_the_api_does() {
    let wire = json!({
        "apiVersion": "net.example.com/v1beta2",
        "kind": "EdgeProxy",
        "metadata": {"name": "p", "generation": 3},
        "spec": {"replicas": 2, "mode": "Fast", "weight": 0.5, "backends": [], "labels": {}, "zone": null},
        "status": {"observedGeneration": 3, "replicas": 2},
    });
    let proxy: EdgeProxy = from_value(wire.clone()).unwrap();
    assert_eq!((proxy.spec.mode, proxy.status.as_ref().unwrap().replicas), (Mode::Fast, 2));
    assert_eq!(to_value(&proxy).unwrap(), wire);
    let bare: EdgeProxy = from_value(json!({"metadata": {}, "spec": {"replicas": 1, "mode": "Cached"}})).unwrap();
    assert!(bare.status.is_none() && to_value(&bare).unwrap().get("status").is_none());
}
