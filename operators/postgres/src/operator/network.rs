//! How a cluster is reached: Services by role, passwords, and how many members may be away at once.

use std::collections::BTreeMap;

use windlass::k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use windlass::prelude::*;

use super::metadata;
use crate::kind::PostgresCluster;
use crate::names::{self, APPLICATION, POSTGRES_PORT, PRIMARY, REPLICA, STATUS_PORT};

/// `-rw` leads to the primary, `-ro` to standbys, `-r` to any member, and `-members` is the name of each.
pub(super) fn services(cluster: &PostgresCluster) -> [Service; 4] {
    let name = cluster.name_any();
    let of = |suffix: &str, selector| service(&name, &format!("{name}-{suffix}"), selector);
    let mut members = of("members", names::labels(&name));
    let spec = members.spec.get_or_insert_default();
    spec.cluster_ip = Some("None".into());
    // Members find each other before they serve anybody.
    spec.publish_not_ready_addresses = Some(true);
    spec.ports.get_or_insert_default().push(port("status", STATUS_PORT));
    [
        of("rw", names::role_labels(&name, PRIMARY)),
        of("ro", names::role_labels(&name, REPLICA)),
        of("r", names::labels(&name)),
        members,
    ]
}

fn service(cluster: &str, name: &str, selector: BTreeMap<String, String>) -> Service {
    let spec = ServiceSpec {
        selector: Some(selector),
        ports: Some(vec![port("postgres", POSTGRES_PORT)]),
        ..ServiceSpec::default()
    };
    Service { metadata: metadata(cluster, name), spec: Some(spec), ..Service::default() }
}

fn port(name: &str, number: u16) -> ServicePort {
    ServicePort { name: Some(name.into()), port: number.into(), ..ServicePort::default() }
}

/// One member at a time may be taken away.
pub(super) fn budget(cluster: &PostgresCluster) -> PodDisruptionBudget {
    let name = cluster.name_any();
    let selector = LabelSelector { match_labels: Some(names::labels(&name)), ..LabelSelector::default() };
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        selector: Some(selector),
        ..PodDisruptionBudgetSpec::default()
    };
    PodDisruptionBudget { metadata: metadata(&name, name.clone()), spec: Some(spec), ..PodDisruptionBudget::default() }
}

/// How to connect as a role.
pub(super) fn credentials(cluster: &PostgresCluster, secret: String, role: &str, password: &str) -> Secret {
    let name = cluster.name_any();
    let host = format!("{name}-rw.{}.svc", cluster.namespace().unwrap_or_default());
    let database = if role == APPLICATION { APPLICATION } else { "postgres" };
    let texts = [
        ("username", role.to_owned()),
        ("password", password.to_owned()),
        ("host", host.clone()),
        ("port", POSTGRES_PORT.to_string()),
        ("database", database.to_owned()),
        ("uri", format!("postgresql://{role}:{password}@{host}:{POSTGRES_PORT}/{database}")),
    ];
    let string_data = texts.map(|(key, text)| (key.to_owned(), text)).into();
    Secret {
        metadata: metadata(&name, secret),
        type_: Some("kubernetes.io/basic-auth".into()),
        string_data: Some(string_data),
        ..Secret::default()
    }
}
