//! Services, endpoints, ingresses, policies.

use serde_json::Value;

use super::view::{NONE, UNSET, View, at, integer, labels, list, or_none, scalar, selector, some_of, text};

/// How many addresses a cell names.
const SHOWN_MAX: usize = 3;

/// The cells of a Service.
pub(super) fn service(view: &View<'_>) -> Vec<Value> {
    let address = view.list("spec.clusterIPs").first().and_then(Value::as_str);
    let ports: Vec<String> = view.list("spec.ports").iter().map(service_port).collect();
    vec![
        view.name().into(),
        view.text("spec.type").into(),
        address.unwrap_or_else(|| view.text_or("spec.clusterIP", NONE)).into(),
        external_address(view).into(),
        or_none(ports.join(",")).into(),
        view.age().into(),
        labels(view.at("spec.selector")).into(),
    ]
}

fn service_port(port: &Value) -> String {
    let (number, protocol) = (integer(port, "port"), text(port, "protocol"));
    match integer(port, "nodePort") {
        0 => format!("{number}/{protocol}"),
        node => format!("{number}:{node}/{protocol}"),
    }
}

fn external_address(view: &View<'_>) -> String {
    let external: Vec<String> = view.list("spec.externalIPs").iter().map(scalar).collect();
    match view.text("spec.type") {
        "ExternalName" => view.text("spec.externalName").to_owned(),
        "LoadBalancer" => {
            let all = [load_balancer(view), external.join(",")];
            let joined = all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",");
            if joined.is_empty() { "<pending>".to_owned() } else { joined }
        }
        "ClusterIP" | "NodePort" => or_none(external.join(",")),
        _ => "<unknown>".to_owned(),
    }
}

fn load_balancer(view: &View<'_>) -> String {
    let address = |ingress: &Value| {
        Some(text(ingress, "ip")).filter(|ip| !ip.is_empty()).unwrap_or_else(|| text(ingress, "hostname")).to_owned()
    };
    let mut addresses: Vec<String> =
        view.list("status.loadBalancer.ingress").iter().map(address).filter(|text| !text.is_empty()).collect();
    addresses.sort();
    addresses.dedup();
    addresses.join(",")
}

/// The cells of an Endpoints object.
pub(super) fn endpoints(view: &View<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in view.list("subsets") {
        let (addresses, ports) = (list(subset, "addresses"), list(subset, "ports"));
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| text(address, "ip").to_owned()));
        }
        for port in ports {
            let number = integer(port, "port");
            all.extend(addresses.iter().map(|address| with_port(text(address, "ip"), number)));
        }
    }
    let shown = if view.list("subsets").is_empty() { NONE.to_owned() } else { some_of(&all, SHOWN_MAX) };
    vec![view.name().into(), shown.into(), view.age().into()]
}

fn with_port(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// The cells of an EndpointSlice.
pub(super) fn endpoint_slice(view: &View<'_>) -> Vec<Value> {
    let port = |port: &Value| match (at(port, "port").as_i64(), at(port, "name").as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports: Vec<String> = view.list("ports").iter().map(port).collect();
    let addresses: Vec<String> =
        view.list("endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses")).map(scalar).collect();
    let shown = |texts: &[String]| if texts.is_empty() { UNSET.to_owned() } else { some_of(texts, SHOWN_MAX) };
    vec![
        view.name().into(),
        view.text("addressType").into(),
        shown(&ports).into(),
        shown(&addresses).into(),
        view.age().into(),
    ]
}

/// The cells of an Ingress.
pub(super) fn ingress(view: &View<'_>) -> Vec<Value> {
    let hosts: Vec<String> = view
        .list("spec.rules")
        .iter()
        .map(|rule| text(rule, "host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { some_of(&hosts, SHOWN_MAX) };
    let ports = if view.list("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        view.name().into(),
        view.text_or("spec.ingressClassName", NONE).into(),
        hosts.into(),
        load_balancer(view).into(),
        ports.into(),
        view.age().into(),
    ]
}

/// The cells of an IngressClass.
pub(super) fn ingress_class(view: &View<'_>) -> Vec<Value> {
    let parameters = view.at("spec.parameters");
    let group = Some(text(parameters, "apiGroup"))
        .filter(|group| !group.is_empty())
        .map_or_else(String::new, |group| format!(".{group}"));
    let shown = if parameters.is_null() {
        NONE.to_owned()
    } else {
        format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
    };
    let name = default_name(view, "ingressclass.kubernetes.io/is-default-class");
    vec![name.into(), view.text("spec.controller").into(), shown.into(), view.age().into()]
}

/// The cells of a NetworkPolicy.
pub(super) fn network_policy(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), or_none(selector(view.at("spec.podSelector"))).into(), view.age().into()]
}

/// The name of a class, marked if it is the default one.
pub(super) fn default_name(view: &View<'_>, annotation: &str) -> String {
    let marked = view.at("metadata.annotations").get(annotation).and_then(Value::as_str) == Some("true");
    format!("{}{}", view.name(), if marked { " (default)" } else { "" })
}
