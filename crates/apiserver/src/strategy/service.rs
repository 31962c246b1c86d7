//! Services: they get an address, and keep it.

use std::{collections::HashSet, net::Ipv4Addr};

use serde_json::{Value, json};
use windlass_schema::{FieldError, builtin};
use windlass_store::Snapshot;

use super::service_ports;
use crate::{ApiError, Config, Subject, object::Object, rest};

/// What other Services have.
#[derive(Debug, Default)]
pub(super) struct Used {
    addresses: HashSet<Ipv4Addr>,
    pub(super) ports: HashSet<u16>,
}

impl Used {
    /// What all Services have but the one with `uid`.
    pub(super) fn of(snapshot: &Snapshot, uid: &str) -> Self {
        let kind = builtin().find("", "v1", "services").expect("the table has Services");
        let mut used = Self::default();
        for (_, entry) in snapshot.range(&rest::prefix(kind, ""), None) {
            let Ok(service) = serde_json::from_slice::<Value>(&entry.value) else { continue };
            if service.uid() == uid {
                continue;
            }
            used.addresses.extend(text(&service, "/spec/clusterIP").parse::<Ipv4Addr>());
            let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            let ports = ports.filter_map(|port| port.get("nodePort")?.as_u64());
            used.ports.extend(ports.filter_map(|port| u16::try_from(port).ok()));
        }
        used
    }
}

/// Gives the Service what it needs and does not have yet.
pub(super) fn allocate(config: &Config, used: &Used, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if !object["spec"].is_object() {
        return Ok(());
    }
    let name = object.name().to_owned();
    let refused = |error| ApiError::invalid_fields(Subject { group: "", resource: "Service" }, &name, vec![error]);
    if text(object, "/spec/type") == "ExternalName" {
        let spec = object["spec"].as_object_mut().expect("checked above");
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(field);
        }
        return service_ports::release(object).map_err(refused);
    }
    keep_address(object, old);
    let address = address(config, used, object).map_err(refused)?;
    let spec = &mut object["spec"];
    spec["clusterIP"] = address.as_str().into();
    spec["clusterIPs"] = json!([address]);
    if spec.get("ipFamilies").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    if spec.get("ipFamilyPolicy").is_none() {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
    service_ports::allocate(&config.node_ports, &used.ports, object, old).map_err(refused)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An update that does not name the address means the one that is there.
fn keep_address(object: &mut Value, old: Option<&Value>) {
    let Some(old) = old.filter(|old| text(old, "/spec/type") != "ExternalName") else { return };
    if text(object, "/spec/clusterIP").is_empty() && !text(old, "/spec/clusterIP").is_empty() {
        object["spec"]["clusterIP"] = text(old, "/spec/clusterIP").into();
    }
}

/// The address that the Service asks for.
fn wanted(object: &Value) -> &str {
    match text(object, "/spec/clusterIP") {
        "" => text(object, "/spec/clusterIPs/0"),
        wanted => wanted,
    }
}

fn address(config: &Config, used: &Used, object: &Value) -> Result<String, FieldError> {
    let wanted = wanted(object);
    let refused = |why: &str| {
        let space = if wanted.is_empty() { "" } else { " " };
        let why = format!("failed to allocate IP{space}{wanted}: {why}");
        FieldError::invalid("spec.clusterIPs", json!([wanted]), why)
    };
    match wanted {
        "None" => Ok(wanted.to_owned()),
        "" => match config.service_range.pick(&used.addresses) {
            // The name is noted with the address, before anybody looks at it.
            Some(address) if object.name().is_empty() => Err(refused(&format!(
                "IPAddress.networking.k8s.io \"{address}\" is invalid: spec.parentRef.name: Required value"
            ))),
            Some(address) => Ok(address.to_string()),
            None => Err(refused("range is full")),
        },
        _ => {
            let address: Ipv4Addr = wanted
                .parse()
                .map_err(|_| FieldError::invalid("spec.clusterIPs[0]", wanted, "must be a valid IP address"))?;
            if !config.service_range.contains(address) {
                let range = config.service_range;
                return Err(refused(&format!(
                    "the provided IP is not in the valid range. The range of valid IPs is {range}"
                )));
            }
            if used.addresses.contains(&address) {
                return Err(refused("provided IP is already allocated"));
            }
            Ok(wanted.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        json!({ "metadata": { "name": "s" }, "spec": spec })
    }

    fn allocated(spec: Value, used: &Used, old: Option<&Value>) -> Result<Value, ApiError> {
        let mut object = service(spec);
        allocate(&Config::default(), used, &mut object, old).map(|()| object)
    }

    #[test]
    fn a_service_gets_an_address_and_keeps_it() {
        let used = Used::default();
        let made = allocated(json!({"type": "ClusterIP", "ports": []}), &used, None).unwrap();
        let address = text(&made, "/spec/clusterIP").to_owned();
        assert!(Config::default().service_range.contains(address.parse().unwrap()));
        assert_eq!(made["spec"]["clusterIPs"], json!([address]));
        let kept = allocated(json!({"type": "ClusterIP", "ports": []}), &used, Some(&made)).unwrap();
        assert_eq!(text(&kept, "/spec/clusterIP"), address);
    }

    #[test]
    fn a_service_without_a_name_gets_no_address() {
        let nameless = |spec: Value| {
            let mut object = json!({ "metadata": {}, "spec": spec });
            allocate(&Config::default(), &Used::default(), &mut object, None)
        };
        let refused = nameless(json!({"type": "ClusterIP"})).unwrap_err();
        assert!(refused.message.ends_with("is invalid: spec.parentRef.name: Required value"), "{}", refused.message);
        assert!(nameless(json!({"type": "ExternalName"})).is_ok());
        assert!(nameless(json!({"type": "ClusterIP", "clusterIP": "None"})).is_ok());
    }

    #[test]
    fn an_address_is_given_once() {
        let used = Used { addresses: HashSet::from([[10, 96, 0, 9].into()]), ..Used::default() };
        let refused = allocated(json!({"type": "ClusterIP", "clusterIP": "10.96.0.9"}), &used, None).unwrap_err();
        assert_eq!(refused.code, 422);
        assert!(refused.message.contains("provided IP is already allocated"), "{}", refused.message);
        assert!(allocated(json!({"type": "ClusterIP", "clusterIP": "10.96.0.10"}), &used, None).is_ok());
        assert!(allocated(json!({"type": "ClusterIP", "clusterIP": "1.2.3.4"}), &used, None).is_err());
    }

    #[test]
    fn headless_and_external_services_have_no_address() {
        let used = Used::default();
        let headless = allocated(json!({"type": "ClusterIP", "clusterIP": "None"}), &used, None).unwrap();
        assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
        let external =
            allocated(json!({"type": "ExternalName", "externalName": "x", "clusterIP": "10.96.0.9"}), &used, None);
        assert_eq!(external.unwrap()["spec"], json!({"type": "ExternalName", "externalName": "x"}));
    }
}
