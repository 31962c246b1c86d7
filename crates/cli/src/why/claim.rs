//! What keeps a claim from being bound.

use serde_json::Value;

use super::facts::{Facts, message, text};
use super::finding::{Depth, Finding};

/// What is wrong with a claim.
pub(super) fn look(claim: &Value, facts: &Facts) -> Vec<Finding> {
    let finding = |says: String| Finding::new(Depth::Cause, claim, says);
    let class = text(&claim["spec"]["storageClassName"]);
    match text(&claim["status"]["phase"]) {
        "Lost" => {
            let volume = text(&claim["spec"]["volumeName"]);
            let says = format!("its volume {volume} is gone, and with it the data");
            return vec![finding(says).advice("restore the data from a backup into a new claim")];
        }
        "Pending" => {}
        _ => return Vec::new(),
    }
    if let Some(classes) =
        facts.classes.as_ref().filter(|classes| !class.is_empty() && !classes.iter().any(|it| it == class))
    {
        let known = if classes.is_empty() { "none".to_owned() } else { classes.join(", ") };
        let says = format!("is pending: there is no storage class {class}");
        return vec![finding(says).advice(format!("make the class, or name another (there are: {known})"))];
    }
    let Some(event) =
        facts.event(claim, &["ProvisioningFailed", "FailedBinding", "WaitForFirstConsumer", "ExternalProvisioning"])
    else {
        return vec![
            finding("is pending, and nothing says why".to_owned())
                .advice("see whether a provisioner for its class runs"),
        ];
    };
    let says = message(event);
    match text(&event["reason"]) {
        "WaitForFirstConsumer" => {
            let finding = Finding::new(Depth::Effect, claim, "is pending until a Pod that uses it has a node");
            vec![finding.advice("look at the Pod that uses it; without one, nothing is wrong")]
        }
        "FailedBinding" if class.is_empty() => {
            let advice =
                "name a storage class (spec.storageClassName), mark one as the default, or make a volume that fits";
            vec![finding(format!("is pending: {says}")).advice(advice)]
        }
        "ExternalProvisioning" => {
            vec![finding(format!("is pending: {says}")).advice("see whether the provisioner of its class runs")]
        }
        _ => vec![finding(format!("is pending: {says}")).advice("see the class and its provisioner")],
    }
}
