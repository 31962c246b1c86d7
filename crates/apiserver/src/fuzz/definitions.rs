//! Definitions of custom kinds, and objects of them.

use serde_json::Value;
use windlass_schema::{conform, protobuf};

use crate::{
    codec::parse_yaml,
    crd::{definition, kinds, resource, validate},
    registry::Served,
    table::{IncludeObject, TableOptions, TableVersion, Tabler},
};

const NAME: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

/// A definition and objects of its kind, as documents of YAML.
pub(super) fn definition(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut documents = text.split("\n---\n").map(|text| parse_yaml(text.as_bytes()).ok());
    let Some(Some(first)) = documents.next() else { return };
    let Ok(conformed) = conform(NAME, first.value) else { return };
    let mut object = conformed.object;
    written(&object);
    definition::default(&mut object);
    let errors = validate::create(&object);
    let _ = validate::update(&object, &object);
    let Ok(definition) = definition::Definition::read(&object) else { return };
    // The schemas of stored definitions are trusted, so what is refused need not make kinds.
    if errors.iter().any(|error| error.path.contains("schema")) {
        return;
    }
    let Ok(kinds) = kinds(&definition) else { return };
    let objects: Vec<Value> = documents.flatten().map(|document| document.value).collect();
    for kind in &kinds {
        let mut old = None;
        for object in &objects {
            old = Some(custom(kind, object, old.as_ref()));
        }
    }
}

fn written(object: &Value) {
    let mut object = object.clone();
    object["apiVersion"] = "apiextensions.k8s.io/v1".into();
    object["kind"] = "CustomResourceDefinition".into();
    let Ok(bytes) = protobuf::encode(&object) else { return };
    let read = protobuf::decode(&bytes, None).unwrap_or_else(|error| panic!("{error}: {object}"));
    let again = protobuf::encode(&read).unwrap_or_else(|error| panic!("{error}: {read}"));
    assert_eq!(again, bytes, "{object} {read}");
}

fn custom(kind: &Served, object: &Value, old: Option<&Value>) -> Value {
    let mut object = object.clone();
    let Some(custom) = kind.custom() else { return object };
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), kind.api_version().into());
        members.insert("kind".to_owned(), kind.kind().kind.as_str().into());
    }
    resource::complete(kind, &mut object);
    let mut again = object.clone();
    assert_eq!(resource::complete(kind, &mut again), [""; 0], "what is pruned is pruned");
    assert_eq!(again, object, "what is complete stays as it is");
    let _ = resource::validate(kind, custom, &object, old);
    if let Some(old) = old {
        let _ = resource::validate_status(kind, custom, &object, old);
    }
    let options =
        TableOptions { include: IncludeObject::None, version: TableVersion::V1, now: jiff::Timestamp::UNIX_EPOCH };
    Tabler::custom(&custom.columns).table(std::slice::from_ref(&object), &Value::Null, options);
    object
}
