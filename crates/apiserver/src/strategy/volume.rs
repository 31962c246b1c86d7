//! Claims of storage: what was asked for stays, but may grow.

use serde_json::Value;
use windlass_schema::FieldError;

pub(super) fn validate_claim(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if object.pointer("/spec/accessModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if object.pointer("/spec/resources/requests/storage").is_none() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
    let Some(old) = old else { return errors };
    let closed = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(members) = spec.as_object_mut() {
            members.retain(|field, _| !["resources", "volumeAttributesClassName"].contains(&field.as_str()));
            // The binder names the volume once.
            if old.pointer("/spec/volumeName").is_none() {
                members.remove("volumeName");
            }
            if old.pointer("/spec/storageClassName").is_none() {
                members.remove("storageClassName");
            }
        }
        spec
    };
    if closed(object) != closed(old) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_bound_once_and_may_grow() {
        let claim = |size: &str, volume: Option<&str>| {
            let mut claim =
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
            if let Some(volume) = volume {
                claim["spec"]["volumeName"] = volume.into();
            }
            claim
        };
        assert!(validate_claim(&claim("1Gi", None), None).is_empty());
        assert!(validate_claim(&claim("2Gi", Some("v")), Some(&claim("1Gi", None))).is_empty());
        assert_eq!(validate_claim(&claim("1Gi", Some("w")), Some(&claim("1Gi", Some("v"))))[0].path, "spec");
        assert_eq!(validate_claim(&json!({"spec": {}}), None).len(), 2);
    }
}
