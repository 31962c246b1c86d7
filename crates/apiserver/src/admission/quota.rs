//! ResourceQuotas: what a write costs, and whether there is enough left for it.
//!
//! The charge is part of the commit that stores the object, so that what is used is never more than what is stored, and
//! never less by more than what was deleted and not counted yet.

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::quota::{Amounts, Counting, Quota, sum, to_value};
use windlass_store::{Snapshot, Write};

use super::Operation;
use crate::{ApiError, Subject, codec::json_bytes, object::Object};

/// A write that may cost something.
#[derive(Debug)]
pub(crate) struct Charge<'a> {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject<'a>,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) object: &'a Value,
    /// The object before; `Null` for creates.
    pub(crate) old: &'a Value,
    pub(crate) now: Timestamp,
}

/// Kinds that are asked and answered, but not kept.
const NOT_KEPT: [&str; 8] = [
    "bindings",
    "componentstatuses",
    "tokenreviews",
    "selfsubjectreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
    "localsubjectaccessreviews",
    "selfsubjectrulesreviews",
];

/// Where the quotas of a namespace are stored.
pub(crate) fn prefix(namespace: &str) -> String {
    format!("/core/resourcequotas/{namespace}/")
}

impl Charge<'_> {
    /// Whether quotas have a say in the write at all.
    pub(crate) fn applies(&self) -> bool {
        let resource = self.subject.resource;
        if self.namespace.is_empty() || resource == "events" || NOT_KEPT.contains(&resource) {
            return false;
        }
        let deadline = |object: &Value| object["spec"]["activeDeadlineSeconds"].is_null();
        let parts = |object: &Value| {
            ["allocatedResources", "currentVolumeAttributesClassName", "modifyVolumeStatus"]
                .map(|name| object["status"][name].clone())
        };
        match (self.counting(), self.operation, self.subresource) {
            (_, Operation::Create, "") => true,
            (Counting::Pods, Operation::Update, "") => deadline(self.object) != deadline(self.old),
            (Counting::Pods, Operation::Update, "resize") => true,
            (Counting::Services | Counting::Claims, Operation::Update, "") => true,
            (Counting::Claims, Operation::Update, "status") => parts(self.object) != parts(self.old),
            _ => false,
        }
    }

    /// What must be written together with the object.
    ///
    /// # Errors
    /// 403, naming the quota and what it has left.
    pub(crate) fn writes(&self, snapshot: &Snapshot) -> Result<Vec<Write>, ApiError> {
        let mut writes = Vec::new();
        for (key, entry) in snapshot.range(&prefix(self.namespace), None) {
            let mut stored: Value = serde_json::from_slice(&entry.value).map_err(ApiError::internal)?;
            if let Some(used) = self.cost(stored.name(), &Quota::read(&stored))? {
                stored["status"]["used"] = to_value(&used);
                writes.push(Write::update(&**key, entry.modified, json_bytes(&stored)));
            }
        }
        Ok(writes)
    }

    fn counting(&self) -> Counting<'_> {
        Counting::of(self.subject.group, self.subject.resource)
    }

    /// What is used of the quota after the write; `None` if it does not matter to it.
    fn cost(&self, name: &str, quota: &Quota) -> Result<Option<Amounts>, ApiError> {
        let counting = self.counting();
        if !quota.counts(counting, self.object) {
            return Ok(None);
        }
        let limited: Vec<&str> = quota.hard.keys().map(String::as_str).filter(|name| counting.has(name)).collect();
        counting
            .check_complete(limited.iter().copied(), self.object)
            .map_err(|why| self.refuse(format!("failed quota: {name}: {why}")))?;
        if limited.iter().any(|limited| !quota.used.contains_key(*limited)) {
            return Err(self.refuse(format!("status unknown for quota: {name}, resources: {}", limited.join(","))));
        }
        let added = self.added(quota)?;
        if added.is_empty() {
            return Ok(None);
        }
        let used = sum(quota.used.clone(), &added);
        let exceeded: Vec<&String> = added.keys().filter(|name| used[*name] > quota.hard[*name]).collect();
        if exceeded.is_empty() || self.subresource == "status" {
            return Ok(Some(used));
        }
        let [requested, used, hard] = [&added, &quota.used, &quota.hard].map(|amounts| {
            let shown = exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
            shown.collect::<Vec<_>>().join(",")
        });
        Err(self.refuse(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {hard}")))
    }

    /// What the write adds to what the quota limits.
    fn added(&self, quota: &Quota) -> Result<Amounts, ApiError> {
        let counting = self.counting();
        let usage = counting.usage(self.object, self.now);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.nanos() < 0).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
            return Err(self.refuse(why));
        }
        let before = if self.operation == Operation::Update && quota.counts(counting, self.old) {
            counting.usage(self.old, self.now)
        } else {
            Amounts::new()
        };
        let added = usage.into_iter().filter(|(name, _)| quota.hard.contains_key(name)).filter_map(|(name, amount)| {
            let added = amount - before.get(&name).copied().unwrap_or_default();
            (added.nanos() > 0).then_some((name, added))
        });
        Ok(added.collect())
    }

    fn refuse(&self, why: String) -> ApiError {
        ApiError::forbidden(self.subject, self.object.name(), why)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(hard: Value, used: Value) -> Quota {
        Quota::read(&json!({"status": {"hard": hard, "used": used}}))
    }

    fn cost(
        operation: Operation,
        resource: &str,
        (object, old): (Value, Value),
        quota: &Quota,
    ) -> Result<Value, String> {
        let charge = Charge {
            operation,
            subject: Subject { group: "", resource },
            subresource: "",
            namespace: "red",
            object: &object,
            old: &old,
            now: Timestamp::UNIX_EPOCH,
        };
        let cost = charge.cost("q", quota).map_err(|error| error.message)?;
        Ok(cost.map_or(Value::Null, |used| to_value(&used)))
    }

    fn pod(cpu: &str) -> Value {
        let resources = json!({"requests": {"cpu": cpu}});
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
    }

    #[test]
    fn what_fits_is_charged() {
        let quota = quota(json!({"pods": "2", "cpu": "1"}), json!({"pods": "1", "cpu": "500m"}));
        let create = |pod: Value| cost(Operation::Create, "pods", (pod, Value::Null), &quota);
        assert_eq!(create(pod("250m")), Ok(json!({"pods": "2", "cpu": "750m"})));
        assert_eq!(
            create(pod("600m")),
            Err("pods \"p\" is forbidden: exceeded quota: q, requested: cpu=600m, used: cpu=500m, limited: cpu=1"
                .into())
        );
        let silent = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        assert_eq!(create(silent), Err("pods \"p\" is forbidden: failed quota: q: must specify cpu for: c".into()));
        assert_eq!(cost(Operation::Create, "secrets", (json!({}), Value::Null), &quota), Ok(Value::Null));
    }

    #[test]
    fn only_what_an_update_adds_is_charged() {
        let quota = quota(json!({"services.nodeports": "1"}), json!({"services.nodeports": "0"}));
        let service = |kind: &str, ports: usize| json!({"spec": {"type": kind, "ports": vec![json!({}); ports]}});
        let update = |object, old| cost(Operation::Update, "services", (object, old), &quota);
        assert_eq!(update(service("NodePort", 1), service("ClusterIP", 1)), Ok(json!({"services.nodeports": "1"})));
        assert_eq!(update(service("ClusterIP", 1), service("NodePort", 1)), Ok(Value::Null));
        assert!(update(service("NodePort", 2), service("ClusterIP", 2)).is_err());
    }

    #[test]
    fn a_quota_without_figures_refuses() {
        let quota = quota(json!({"pods": "2"}), json!({}));
        assert_eq!(
            cost(Operation::Create, "pods", (pod("1"), Value::Null), &quota),
            Err("pods \"p\" is forbidden: status unknown for quota: q, resources: pods".into())
        );
    }
}
