//! What the server does to a definition that clients write.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    conditions,
    definition::{self, CLEANUP_FINALIZER, Condition, Definition},
};
use crate::object::Object;

/// Makes a definition from outside one that can be stored: no status of its own, the storage version noted.
pub(crate) fn prepare_create(definition: &mut Value) {
    definition::default(definition);
    definition["status"] =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []});
    note_storage_version(definition);
}

/// Keeps the status of a changed definition, and notes a new storage version.
pub(crate) fn prepare_update(definition: &mut Value, old: &Value) {
    definition::default(definition);
    crate::object::take_over(definition, old, "status");
    note_storage_version(definition);
}

/// Marks a definition that is to be deleted, so that it stays until its objects are gone.
pub(crate) fn begin_deletion(definition: &mut Value, now: Timestamp) {
    let mut finalizers: Vec<String> = definition.finalizers().into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
        definition.set_finalizers(finalizers);
    }
    let condition = Condition {
        r#type: "Terminating".into(),
        status: "True".into(),
        reason: "InstanceDeletionPending".into(),
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon".into(),
        ..Condition::default()
    };
    conditions::set(definition, condition, now);
}

fn note_storage_version(definition: &mut Value) {
    let Ok(read) = Definition::read(definition) else { return };
    let Some(name) = read.storage_version() else { return };
    if read.status.stored_versions.iter().any(|stored| stored == name) {
        return;
    }
    let mut stored = read.status.stored_versions.clone();
    stored.push(name.to_owned());
    let status = definition.as_object_mut().map(|members| members.entry("status").or_insert_with(|| json!({})));
    if let Some(Value::Object(status)) = status {
        status.insert("storedVersions".into(), stored.into());
    } else {
        definition["status"] = Value::Object(Map::from_iter([("storedVersions".to_owned(), stored.into())]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_versions_are_remembered() {
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
        let mut old = json!({"spec": {"names": {"plural": "things", "kind": "Thing"}, "versions": [version("v1", true)]}, "status": {"junk": 1}});
        prepare_create(&mut old);
        assert_eq!(old["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(old["spec"]["names"]["singular"], "thing");
        assert_eq!(old["spec"]["names"]["listKind"], "ThingList");
        assert_eq!(old["spec"]["conversion"]["strategy"], "None");
        let mut new = old.clone();
        new["spec"]["versions"] = json!([version("v1", false), version("v2", true)]);
        new["status"] = json!({});
        prepare_update(&mut new, &old);
        assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    }

    #[test]
    fn a_definition_waits_for_its_objects() {
        let mut definition = json!({"metadata": {"name": "x"}, "status": {}});
        begin_deletion(&mut definition, Timestamp::UNIX_EPOCH);
        begin_deletion(&mut definition, Timestamp::UNIX_EPOCH);
        assert_eq!(definition["metadata"]["finalizers"], json!([CLEANUP_FINALIZER]));
        assert_eq!(definition["status"]["conditions"].as_array().unwrap().len(), 1);
    }
}
