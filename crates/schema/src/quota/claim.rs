//! Claims of storage as quotas count them.

use serde_json::Value;

use super::Amounts;
use crate::quantity::Quantity;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
/// Between the name of a storage class and that of the amount.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The older place of the storage class.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn has(name: &str) -> bool {
    let by_class = || name.split_once(OF_CLASS).is_some_and(|(_, amount)| [CLAIMS, STORAGE].contains(&amount));
    [COUNT, CLAIMS, STORAGE].contains(&name) || by_class()
}

pub(super) fn usage(claim: &Value) -> Amounts {
    let mut amounts = Amounts::from([(COUNT.to_owned(), Quantity::units(1))]);
    let by_annotation = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    let class = by_annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    let mut add = |name: &str, amount: Quantity| {
        amounts.insert(name.to_owned(), amount);
        if !class.is_empty() {
            amounts.insert(format!("{class}{OF_CLASS}{name}"), amount);
        }
    };
    add(CLAIMS, Quantity::units(1));
    let amount = |path: &str| claim.pointer(path).and_then(Value::as_str).and_then(Quantity::parse);
    if let Some(asked) = amount("/spec/resources/requests/storage") {
        let allocated = amount("/status/allocatedResources/storage").filter(|allocated| *allocated > asked);
        add(STORAGE, allocated.unwrap_or(asked).round_up());
    }
    amounts
}
