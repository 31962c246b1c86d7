//! The Service of the name server, `kube-system/kube-dns` as on other clusters: it keeps the address from being given away.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::config::AddressRange;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-dns";
/// The place in the range of Services where people look for the name server.
const PLACE: u32 = 10;

/// Whose the Service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The node serves this address.
    Node(Ipv4Addr),
    /// Pods that somebody deployed do.
    Pods(Ipv4Addr),
}

/// The Service, made if it is not there.
pub(super) async fn ensure(client: kube::Client, range: AddressRange) -> kube::Result<(Service, Option<Owner>)> {
    let services: Api<Service> = Api::namespaced(client, NAMESPACE);
    if let Some(service) = services.get_opt(NAME).await? {
        let owner = owner(&service);
        return Ok((service, owner));
    }
    let made = match services.create(&PostParams::default(), &wanted(range.nth(PLACE))).await {
        // Somebody has the address already: any other will do.
        Err(kube::Error::Api(status)) if status.is_invalid() => {
            services.create(&PostParams::default(), &wanted(None)).await?
        }
        other => other?,
    };
    let owner = owner(&made);
    Ok((made, owner))
}

fn owner(service: &Service) -> Option<Owner> {
    let spec = service.spec.as_ref()?;
    let address = spec.cluster_ip.as_ref()?.parse().ok()?;
    let selects = spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
    Some(if selects { Owner::Pods(address) } else { Owner::Node(address) })
}

fn wanted(address: Option<Ipv4Addr>) -> Service {
    let mut service = json!({"metadata": {"name": NAME, "labels": {"k8s-app": NAME, "kubernetes.io/name": "CoreDNS",
            "app.kubernetes.io/managed-by": "windlass"}},
        "spec": {"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]}});
    if let Some(address) = address {
        service["spec"]["clusterIP"] = json!(address.to_string());
    }
    serde_json::from_value(service).expect("this is a Service")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_with_a_selector_is_somebody_elses() {
        let mut service = wanted(Some(Ipv4Addr::new(127, 64, 0, 10)));
        assert_eq!(owner(&service), Some(Owner::Node(Ipv4Addr::new(127, 64, 0, 10))));
        let spec = service.spec.as_mut().unwrap();
        spec.selector = Some([("k8s-app".to_owned(), "kube-dns".to_owned())].into());
        assert_eq!(owner(&service), Some(Owner::Pods(Ipv4Addr::new(127, 64, 0, 10))));
        service.spec.as_mut().unwrap().cluster_ip = Some("None".to_owned());
        assert_eq!(owner(&service), None);
    }
}
