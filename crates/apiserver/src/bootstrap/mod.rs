//! The objects that every cluster starts with: namespaces, RBAC policy, priority classes, the `kubernetes` Service.

mod flows;
mod objects;
mod policy;
mod reconcile;

use std::{net::SocketAddr, sync::OnceLock};

use jiff::Timestamp;
use serde_json::Value;
use windlass_store::{CommitError, Snapshot, Store, Write};

use crate::{AddressRange, aggregation, object, rest::into_metadata};

/// How often a start tries again when somebody else writes at the same time.
const ATTEMPTS_MAX: usize = 10;

/// What the objects of a new cluster depend on.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Where clients find the API server; the `kubernetes` Service leads there.
    pub endpoint: SocketAddr,
    /// The address of the `kubernetes` Service.
    pub service_address: std::net::IpAddr,
    /// The range from which Services get their addresses.
    pub service_range: AddressRange,
    /// The certificate of the authority that signs client certificates, if there is one.
    pub client_ca: Option<String>,
    /// The certificate of the authority that signs what this server shows to other servers, if there is one.
    pub front_proxy_ca: Option<String>,
    /// Whether `metrics.k8s.io` is served, which people who may view a namespace may read.
    pub serves_metrics: bool,
}

/// Creates what is missing and repairs what was damaged, in one commit; a cluster that has it all is not written to.
///
/// What is made was made at `now`.
///
/// # Errors
/// Those of the store.
pub async fn bootstrap(store: &Store, bootstrap: &Bootstrap, now: Timestamp) -> Result<(), CommitError> {
    for _ in 1..ATTEMPTS_MAX {
        match store.commit(writes(&store.snapshot(), bootstrap, now)).await {
            Err(CommitError::Precondition { .. }) => {}
            outcome => return outcome.map(drop),
        }
    }
    store.commit(writes(&store.snapshot(), bootstrap, now)).await.map(drop)
}

/// The writes that bring back flow schemas and priority levels that were deleted or damaged.
pub(crate) fn flow_writes(snapshot: &Snapshot) -> Vec<Write> {
    flows::flows().iter().filter_map(|wanted| write(snapshot, wanted, &object::now())).collect()
}

/// An object that should be there, and how one that is there already is treated.
#[derive(Debug)]
struct Wanted {
    key: String,
    object: Value,
    /// The object as it is stored, except for its identity; written once, however many clusters start.
    text: OnceLock<String>,
    reconcile: fn(live: &mut Value, wanted: &Value),
}

impl Wanted {
    fn new(key: String, object: Value, reconcile: fn(live: &mut Value, wanted: &Value)) -> Self {
        Self { key, object, text: OnceLock::new(), reconcile }
    }
}

fn writes(snapshot: &Snapshot, bootstrap: &Bootstrap, now: Timestamp) -> Vec<Write> {
    let (own, flows, now) = (objects::objects(bootstrap), flows::flows(), object::timestamp(now));
    let metrics = policy::metrics().iter().filter(|_| bootstrap.serves_metrics);
    let wanted = own.iter().chain(policy::policy()).chain(metrics).chain(&flows);
    let mut writes: Vec<Write> = wanted.filter_map(|wanted| write(snapshot, wanted, &now)).collect();
    writes.extend(aggregation::builtin_writes(snapshot));
    writes
}

fn write(snapshot: &Snapshot, wanted: &Wanted, now: &str) -> Option<Write> {
    let Wanted { key, object, text, reconcile } = wanted;
    let live = snapshot.get(key).and_then(|entry| Some((entry.modified, serde_json::from_slice(&entry.value).ok()?)));
    let Some((modified, live)) = live else {
        let identity = format!("\"creationTimestamp\":\"{now}\",\"uid\":\"{}\"", uuid::Uuid::new_v4());
        let mut value = Vec::new();
        let text = text.get_or_init(|| object.to_string());
        let is_made = into_metadata(text.as_bytes(), &identity, &mut value);
        debug_assert!(is_made, "{key} has metadata");
        return Some(Write { key: key.clone(), expect: windlass_store::Expect::Any, value: Some(value.into()) });
    };
    let mut repaired: Value = live;
    let before = repaired.clone();
    reconcile(&mut repaired, object);
    (repaired != before).then(|| Write::update(key, modified, repaired.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Attributes, Auth, User};
    use crate::object::Object;
    use serde_json::json;

    fn settings() -> Bootstrap {
        Bootstrap {
            endpoint: "127.64.0.1:6443".parse().unwrap(),
            service_address: "127.64.0.1".parse().unwrap(),
            service_range: "127.64.64.0/18".parse().unwrap(),
            client_ca: Some("CA".to_owned()),
            front_proxy_ca: None,
            serves_metrics: true,
        }
    }

    fn read(store: &Store, key: &str) -> Value {
        serde_json::from_slice(&store.snapshot().get(key).unwrap_or_else(|| panic!("{key} is missing")).value).unwrap()
    }

    #[tokio::test]
    async fn a_new_cluster_has_all_in_one_commit_and_an_old_one_stays_as_it_is() {
        let store = Store::in_memory();
        let before = store.revision();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(store.revision().0, before.0 + 1);
        assert_eq!(read(&store, "/core/namespaces/kube-system")["status"]["phase"], "Active");
        assert_eq!(read(&store, "/core/services/default/kubernetes")["spec"]["clusterIP"], "127.64.0.1");
        let range = read(&store, "/networking.k8s.io/servicecidrs/kubernetes");
        assert_eq!(range["spec"]["cidrs"], json!(["127.64.64.0/18"]));
        assert_eq!(range["status"]["conditions"][0]["type"], "Ready");
        let revision = store.revision();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(store.revision(), revision);
    }

    #[tokio::test]
    async fn a_new_port_reaches_the_service() {
        let store = Store::in_memory();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();
        let uid = read(&store, "/core/services/default/kubernetes").uid().to_owned();
        let moved = Bootstrap { endpoint: "127.64.0.1:7443".parse().unwrap(), ..settings() };
        bootstrap(&store, &moved, Timestamp::UNIX_EPOCH).await.unwrap();
        let service = read(&store, "/core/services/default/kubernetes");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 7443);
        assert_eq!(service.uid(), uid);
        assert_eq!(read(&store, "/discovery.k8s.io/endpointslices/default/kubernetes")["ports"][0]["port"], 7443);
    }

    #[tokio::test]
    async fn damaged_policy_is_repaired_and_additions_stay() {
        let store = Store::in_memory();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();
        let key = "/rbac.authorization.k8s.io/clusterroles/system:discovery";
        let mut role = read(&store, key);
        let own = json!({"verbs": ["get"], "nonResourceURLs": ["/mine"]});
        role["rules"] = json!([own]);
        let write =
            Write { key: key.to_owned(), expect: windlass_store::Expect::Any, value: Some(role.to_string().into()) };
        store.commit(vec![write]).await.unwrap();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();

        let auth = Auth::new(store);
        let ann = User::new("ann", ["people"]);
        for path in ["/mine", "/openapi/v2", "/version"] {
            assert!(auth.authorize(&ann, &Attributes::path("get", path)).is_ok(), "{path}");
        }
    }

    #[tokio::test]
    async fn strangers_see_health_and_version_only() {
        let store = Store::in_memory();
        bootstrap(&store, &settings(), Timestamp::UNIX_EPOCH).await.unwrap();
        let auth = Auth::new(store);
        for (path, expected) in [("/healthz", true), ("/version", true), ("/metrics", false), ("/api", false)] {
            let outcome = auth.authorize(&User::anonymous(), &Attributes::path("get", path));
            assert_eq!(outcome.is_ok(), expected, "{path}");
        }
    }
}
