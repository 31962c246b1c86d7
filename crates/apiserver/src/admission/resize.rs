//! Pods that run do not grow beyond what their node has.

use serde_json::Value;
use windlass_schema::pod_resources;
use windlass_schema::quota::amounts;
use windlass_store::Store;

use super::{Review, stored};
use crate::ApiError;
use crate::error::Cause;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Refuses what no node of that size could give.
pub(super) fn check(store: &Store, review: &Review<'_>) -> Result<(), ApiError> {
    let name = review.object["spec"]["nodeName"].as_str().unwrap_or_default();
    if !review.is_resize() || name.is_empty() || review.object["spec"] == review.old["spec"] {
        return Ok(());
    }
    let node: Option<Value> = stored(store, &format!("/core/nodes/{name}"));
    let node = node.ok_or_else(|| review.refuse(format!("node \"{name}\" not found")))?;
    let too_much = excess(&review.object, &node);
    if too_much.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", too_much.join("; "));
    let cause = Cause { reason: "NodeCapacity".into(), message: String::new(), field: None };
    Err(review.refuse(why).with_cause(cause))
}

/// What the Pod asks for more of than the node has.
fn excess(pod: &Value, node: &Value) -> Vec<String> {
    let (requests, allocatable) = (pod_resources::total(pod, "requests"), amounts(&node["status"]["allocatable"]));
    let units = [("cpu", NANOS_PER_MILLI), ("memory", NANOS_PER_UNIT)];
    let over = units.into_iter().filter_map(|(name, unit)| {
        let nanos = |amounts: &windlass_schema::quota::Amounts| amounts.get(name).map_or(0, |amount| amount.nanos());
        let (asked, there) = (nanos(&requests), nanos(&allocatable));
        let whole = |nanos: i128| nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0);
        (asked > there).then(|| format!("{name}, requested: {}, allocatable: {}", whole(asked), whole(there)))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_node_does_not_have_is_named() {
        let node = json!({"status": {"allocatable": {"cpu": "2", "memory": "1Ki"}}});
        let pod = |requests: Value| json!({"spec": {"containers": [{"resources": {"requests": requests}}]}});
        assert_eq!(excess(&pod(json!({"cpu": "2", "memory": "1024"})), &node), Vec::<String>::new());
        let expect = ["cpu, requested: 2500, allocatable: 2000", "memory, requested: 1025, allocatable: 1024"];
        assert_eq!(excess(&pod(json!({"cpu": "2500m", "memory": "1025"})), &node), expect);
    }
}
