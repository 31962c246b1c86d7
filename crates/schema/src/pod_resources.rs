//! What a Pod asks for in all, and the class of service that follows from it.

use serde_json::Value;

use crate::quota::{Amounts, amounts, sum};

/// The resources that make the class of service, and those that a running Pod may change.
pub const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// What a Pod asks for (`requests`) or may use (`limits`): what it says itself goes before what its containers say.
pub fn total(pod: &Value, field: &str) -> Amounts {
    let spec = &pod["spec"];
    let mut total = of_containers(spec, field);
    total.extend(amounts(&spec["resources"][field]));
    let overhead = amounts(&spec["overhead"]);
    match field {
        "requests" => sum(total, &overhead),
        // What has no limit gets none from its overhead.
        _ => {
            let counted = overhead.into_iter().filter(|(name, _)| total.contains_key(name)).collect();
            sum(total, &counted)
        }
    }
}

/// What the containers of a spec ask for together: they run side by side, init containers one by one before them.
pub fn of_containers(spec: &Value, field: &str) -> Amounts {
    let list = |name: &str| spec[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = |container: &Value| amounts(&container["resources"][field]);
    let total = list("containers").iter().map(own).fold(Amounts::new(), |all, one| sum(all, &one));
    let (mut beside, mut peak) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        if container["restartPolicy"] == "Always" {
            beside = sum(beside, &own(container));
            peak = larger(peak, &beside);
        } else {
            peak = larger(peak, &sum(own(container), &beside));
        }
    }
    larger(sum(total, &beside), &peak)
}

/// The class of service that requests and limits make: of the Pod itself, else of its containers.
pub fn service_class(pod: &Value) -> &'static str {
    let own = &pod["spec"]["resources"];
    let lists = ["containers", "initContainers"].into_iter();
    let parts: Vec<&Value> = match own.is_null() {
        false => vec![own],
        true => {
            let containers = lists.filter_map(|list| pod["spec"][list].as_array()).flatten();
            containers.map(|container| &container["resources"]).collect()
        }
    };
    let amount = |part: &Value, side: &str, name: &str| {
        amounts(&part[side]).get(name).filter(|amount| amount.nanos() > 0).copied()
    };
    let mut guaranteed = !parts.is_empty();
    let mut any = false;
    for (part, name) in parts.iter().flat_map(|part| COMPUTE.map(|name| (part, name))) {
        let (limit, request) = (amount(part, "limits", name), amount(part, "requests", name));
        any |= limit.is_some() || request.is_some();
        guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn larger(mut left: Amounts, right: &Amounts) -> Amounts {
    for (name, amount) in right {
        let own = left.entry(name.clone()).or_insert(*amount);
        *own = (*own).max(*amount);
    }
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_limits_make_the_class() {
        let check = |own: Value, resources: Value, expect| {
            let pod = json!({"spec": {"resources": own, "containers": [{"name": "a", "resources": resources}]}});
            assert_eq!(service_class(&pod), expect, "{pod}");
        };
        let none = Value::Null;
        check(none.clone(), json!({}), "BestEffort");
        check(none.clone(), json!({"requests": {"cpu": "1"}}), "Burstable");
        let both = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}});
        check(none.clone(), json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed");
        check(none.clone(), both.clone(), "Guaranteed");
        let less = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}});
        check(none, less, "Burstable");
        check(both, json!({}), "Guaranteed");
        check(json!({"limits": {"cpu": "1"}}), json!({}), "Burstable");
        check(json!({"requests": {}}), json!({"requests": {"cpu": "1"}}), "BestEffort");
    }

    #[test]
    fn a_pod_needs_its_containers_or_its_largest_init_container_unless_it_says_so_itself() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let check = |init: &str, own: Value, expect: &str| {
            let pod = json!({"spec": {"containers": [container("1"), container("500m")],
                "initContainers": [container(init)], "resources": own}});
            assert_eq!(total(&pod, "requests")["cpu"].to_string(), expect, "{pod}");
        };
        check("1", Value::Null, "1500m");
        check("2", Value::Null, "2");
        check("2", json!({"requests": {"cpu": "3"}}), "3");
        let mut beside = json!({"spec": {"containers": [container("1")], "initContainers": [container("2")]}});
        beside["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
        assert_eq!(total(&beside, "requests")["cpu"].to_string(), "3");
    }
}
