//! The groups and versions that other servers answer for, as APIServices tell.

use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::Value;
use windlass_store::Snapshot;

use super::{PREFIX, description::Description};

/// A group and version that another server answers for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    /// The name of the APIService.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) target: Target,
    /// Which groups clients prefer, and which versions of a group.
    pub(crate) priorities: (i64, i64),
    /// What the server said of its resources when it was last asked; none before it was.
    pub(crate) resources: Option<Arc<Vec<Value>>>,
    /// What the server said of its kinds when it was last asked; none before it was.
    pub(crate) description: Option<Arc<Description>>,
    /// Whether it can be reached.
    pub(crate) is_available: bool,
}

/// Where the server is, and how it is told from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    /// The authorities that may have signed its certificate: PEM in base64.
    pub(crate) ca_bundle: Option<String>,
    /// Whether any certificate will do.
    pub(crate) trusts_anybody: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    group: String,
    version: String,
    service: Option<Service>,
    ca_bundle: Option<String>,
    #[serde(rename = "insecureSkipTLSVerify")]
    insecure_skip_tls_verify: bool,
    group_priority_minimum: i64,
    version_priority: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Service {
    namespace: String,
    name: String,
    port: Option<u16>,
}

/// The port of a Service that is asked, unless something else is said.
const PORT_DEFAULT: u16 = 443;

impl Remote {
    /// Reads an APIService; `None` if this server answers for it itself.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let spec = Spec::deserialize(&object["spec"]).ok()?;
        let service = spec.service?;
        Some(Self {
            name: object["metadata"]["name"].as_str()?.to_owned(),
            group: spec.group,
            version: spec.version,
            target: Target {
                namespace: service.namespace,
                service: service.name,
                port: service.port.unwrap_or(PORT_DEFAULT),
                ca_bundle: spec.ca_bundle,
                trusts_anybody: spec.insecure_skip_tls_verify,
            },
            priorities: (spec.group_priority_minimum, spec.version_priority),
            resources: None,
            description: None,
            is_available: false,
        })
    }

    /// The address of its OpenAPI document of this name, if it has one.
    pub(crate) fn document(&self, name: &str) -> Option<&str> {
        let description = self.description.as_ref().filter(|_| name == self.document_name())?;
        description.document.as_deref()
    }

    /// The name of its OpenAPI document.
    pub(crate) fn document_name(&self) -> String {
        format!("apis/{}/{}", self.group, self.version)
    }

    /// All of them, preferred ones first.
    pub(super) fn all(snapshot: &Snapshot) -> Vec<Self> {
        let objects = snapshot.range(PREFIX, None).filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok());
        let mut all: Vec<Self> = objects.filter_map(|object: Value| Self::read(&object)).collect();
        all.sort_by(|one, other| {
            let (group, version) = one.priorities;
            let (other_group, other_version) = other.priorities;
            (other_group, &one.group, other_version).cmp(&(group, &other.group, version))
        });
        all
    }
}

/// What is known of other servers at the moment.
#[derive(Debug, Default)]
pub(crate) struct Remotes(RwLock<Arc<Vec<Remote>>>);

impl Remotes {
    /// All of them, preferred ones first.
    pub(crate) fn all(&self) -> Arc<Vec<Remote>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who answers for a path; `None` if this server does itself.
    pub(crate) fn of_path(&self, path: &str) -> Option<Remote> {
        let all = self.all();
        if all.is_empty() {
            return None;
        }
        let mut parts = path.trim_start_matches('/').split('/');
        let (Some("apis"), Some(group), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
            return None;
        };
        all.iter().find(|remote| remote.group == group && remote.version == version).cloned()
    }

    /// Who has the OpenAPI document at a path; `None` if this server does itself.
    pub(crate) fn of_document(&self, path: &str) -> Option<Remote> {
        let name = path.strip_prefix("/openapi/v3/")?;
        let all = self.all();
        all.iter().find(|remote| remote.document(name).is_some()).cloned()
    }

    /// Replaces what is known; nothing happens if it is known already.
    pub(super) fn set(&self, all: Vec<Remote>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if **known != all {
            *known = Arc::new(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_services_make_a_group_remote() {
        let object = |spec: Value| json!({"metadata": {"name": "v1.a"}, "spec": spec});
        assert_eq!(Remote::read(&object(json!({"group": "a", "version": "v1"}))), None);
        let spec = json!({"group": "a", "version": "v1", "service": {"namespace": "n", "name": "s"}, "groupPriorityMinimum": 5});
        let remote = Remote::read(&object(spec)).unwrap();
        assert_eq!((remote.target.port, remote.priorities.0, remote.is_available), (443, 5, false));
        let remotes = Remotes::default();
        assert_eq!(remotes.of_path("/apis/a/v1/things"), None);
        remotes.set(vec![remote]);
        assert!(remotes.of_path("/apis/a/v1/things").is_some());
        assert!(remotes.of_path("/apis/a/v1").is_some());
        assert_eq!(remotes.of_path("/apis/a/v2/things"), None);
        assert_eq!(remotes.of_path("/apis/a"), None);
    }
}
