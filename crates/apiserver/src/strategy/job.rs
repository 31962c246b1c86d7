//! Jobs: unless told otherwise, they find their Pods by labels that only they have.

use serde_json::{Value, json};

use crate::object::Object;

pub(super) fn prepare_create(object: &mut Value) {
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
    let Some(template) = object.pointer_mut("/spec/template").filter(|template| template.is_object()) else { return };
    let labels = template.metadata_mut().entry("labels").or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = json!({});
    }
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        if labels.get(key).is_none() {
            labels[key] = value.as_str().into();
        }
    }
    let selector = &mut object["spec"]["selector"];
    if !selector.is_object() {
        *selector = json!({});
    }
    if !selector["matchLabels"].is_object() {
        selector["matchLabels"] = json!({});
    }
    // Whoever names another uid is refused later, as the labels are not those of this Job.
    if selector["matchLabels"].get("batch.kubernetes.io/controller-uid").is_none() {
        selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_labels_of_its_own() {
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"spec": {}}}});
        prepare_create(&mut job);
        assert_eq!(job["spec"]["selector"]["matchLabels"], json!({"batch.kubernetes.io/controller-uid": "u"}));
        assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
        let mut manual = json!({"metadata": {"uid": "u"}, "spec": {"manualSelector": true, "template": {}}});
        let before = manual.clone();
        prepare_create(&mut manual);
        assert_eq!(manual, before);
    }
}
