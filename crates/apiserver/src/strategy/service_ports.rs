//! The ports of Services, and the ports of nodes that lead to them.

use std::{collections::HashSet, ops::RangeInclusive};

use rand::Rng;
use serde_json::Value;
use windlass_schema::FieldError;

/// Takes the node ports back.
#[expect(clippy::unnecessary_wraps, reason = "it stands beside an allocation that can fail")]
pub(super) fn release(object: &mut Value) -> Result<(), FieldError> {
    for port in ports_mut(object) {
        if let Some(members) = port.as_object_mut() {
            members.remove("nodePort");
        }
    }
    Ok(())
}

/// Gives every port its node port, if the type of the Service has them.
pub(super) fn allocate(
    range: &RangeInclusive<u16>,
    used: &HashSet<u16>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), FieldError> {
    let kind = object["spec"]["type"].as_str().unwrap_or_default();
    let wanted = match kind {
        "NodePort" => true,
        "LoadBalancer" => object["spec"]["allocateLoadBalancerNodePorts"] != Value::Bool(false),
        // A Service that had node ports gives them back; one that never had them cannot ask for some.
        _ if old.is_some_and(has_node_ports) => return release(object),
        kind => return refuse_node_ports(kind, object),
    };
    let mut taken = used.clone();
    for (index, port) in ports_mut(object).enumerate() {
        let before = old.and_then(|old| same_port(old, port));
        let path = format!("spec.ports[{index}].nodePort");
        match port["nodePort"].as_u64().filter(|number| *number > 0).or(before) {
            Some(number) => {
                port["nodePort"] = claim(number, range, &mut taken, &path)?.into();
            }
            None if !wanted => {}
            None => {
                let free = pick(range, &taken)
                    .ok_or_else(|| FieldError::invalid(path, 0, "failed to allocate a nodePort: range is full"))?;
                taken.insert(free);
                port["nodePort"] = free.into();
            }
        }
    }
    Ok(())
}

/// Whether the type of the Service has node ports.
fn has_node_ports(object: &Value) -> bool {
    matches!(object["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

fn refuse_node_ports(kind: &str, object: &Value) -> Result<(), FieldError> {
    let ports = object["spec"]["ports"].as_array().into_iter().flatten().enumerate();
    let mut asking = ports.filter(|(_, port)| port["nodePort"].as_u64().is_some_and(|number| number > 0));
    match asking.next() {
        None => Ok(()),
        Some((index, _)) => Err(FieldError::forbidden(
            format!("spec.ports[{index}].nodePort"),
            format!("may not be used when `type` is '{kind}'"),
        )),
    }
}

fn ports_mut(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten()
}

/// The node port that the same port of the Service had before.
fn same_port(old: &Value, port: &Value) -> Option<u64> {
    let ports = old.pointer("/spec/ports")?.as_array()?;
    let same = |other: &&Value| ["port", "protocol"].iter().all(|field| other.get(field) == port.get(field));
    ports.iter().find(same)?.get("nodePort")?.as_u64()
}

fn claim(number: u64, range: &RangeInclusive<u16>, taken: &mut HashSet<u16>, path: &str) -> Result<u16, FieldError> {
    let refused = |why: String| Err(FieldError::invalid(path, number, why));
    match u16::try_from(number) {
        Ok(port) if !range.contains(&port) => refused(format!(
            "provided port is not in the valid range. The range of valid ports is {}-{}",
            range.start(),
            range.end()
        )),
        Ok(port) if !taken.insert(port) => refused("provided port is already allocated".to_owned()),
        Ok(port) => Ok(port),
        Err(_) => refused("must be between 1 and 65535, inclusive".to_owned()),
    }
}

fn pick(range: &RangeInclusive<u16>, taken: &HashSet<u16>) -> Option<u16> {
    let start = rand::rng().random_range(range.clone());
    (start..=*range.end()).chain(*range.start()..start).find(|port| !taken.contains(port))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RANGE: RangeInclusive<u16> = 30_000..=30_001;

    fn service(kind: &str, ports: Value) -> Value {
        json!({"spec": {"type": kind, "ports": ports}})
    }

    #[test]
    fn a_service_without_node_ports_cannot_ask_for_one() {
        let mut asking = service("ClusterIP", json!([{"port": 80, "nodePort": 30_000}]));
        assert!(allocate(&RANGE, &HashSet::new(), &mut asking.clone(), None).is_err());
        let before = service("NodePort", json!([{"port": 80, "nodePort": 30_000}]));
        allocate(&RANGE, &HashSet::new(), &mut asking, Some(&before)).unwrap();
        assert!(asking["spec"]["ports"][0]["nodePort"].is_null());
    }

    #[test]
    fn node_ports_are_given_kept_and_taken_back() {
        let mut made = service("NodePort", json!([{"port": 80, "protocol": "TCP"}]));
        allocate(&RANGE, &HashSet::from([30_000]), &mut made, None).unwrap();
        assert_eq!(made["spec"]["ports"][0]["nodePort"], 30_001);
        let mut again = service("NodePort", json!([{"port": 80, "protocol": "TCP"}]));
        allocate(&RANGE, &HashSet::new(), &mut again, Some(&made)).unwrap();
        assert_eq!(again["spec"]["ports"][0]["nodePort"], 30_001);
        let mut inner = service("ClusterIP", json!([{"port": 80, "protocol": "TCP", "nodePort": 30_001}]));
        allocate(&RANGE, &HashSet::new(), &mut inner, Some(&made)).unwrap();
        assert!(inner["spec"]["ports"][0].get("nodePort").is_none());
        let mut full = service("NodePort", json!([{"port": 80}]));
        assert!(allocate(&RANGE, &HashSet::from([30_000, 30_001]), &mut full, None).is_err());
        let mut outside = service("NodePort", json!([{"port": 80, "nodePort": 80}]));
        assert!(allocate(&RANGE, &HashSet::new(), &mut outside, None).is_err());
    }
}
