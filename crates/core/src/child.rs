//! An object that is wanted, as a value of any kind.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::{Value, json};

/// A wanted object: only the fields that its author cares about.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub resource: ApiResource,
    /// Its namespace; the owner's if it is not said.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// All of it, as the API takes it.
    pub object: Value,
}

/// Why a value cannot be an object of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    /// It has no name.
    #[error("a child {0} has no name: set metadata.name")]
    Unnamed(String),
    /// It cannot be written as JSON.
    #[error("a child {kind} cannot be written as JSON: {why}")]
    Encode {
        /// The kind.
        kind: String,
        /// The encoder's answer.
        why: String,
    },
}

impl Child {
    /// Takes a typed object.
    ///
    /// # Errors
    /// When it has no name, or cannot be written as JSON.
    pub fn new<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Result<Self, ChildError> {
        let resource = ApiResource::erase::<K>(&());
        let ObjectMeta { name, namespace, .. } = object.meta().clone();
        let Some(name) = name else { return Err(ChildError::Unnamed(resource.kind)) };
        let encode = |why: serde_json::Error| ChildError::Encode { kind: resource.kind.clone(), why: why.to_string() };
        let mut object = serde_json::to_value(object).map_err(encode)?;
        object["apiVersion"] = resource.api_version.clone().into();
        object["kind"] = resource.kind.clone().into();
        if resource.group.is_empty() && resource.kind == "Secret" {
            encode_texts(&mut object);
        }
        Ok(Self { resource, namespace, name, object })
    }

    /// Whether both are wishes for one object. A kind is the same in all its versions.
    pub fn is_same_object(&self, other: &Self) -> bool {
        let id = |child: &Self| (child.resource.group.clone(), child.resource.kind.clone(), child.name.clone());
        id(self) == id(other) && self.namespace == other.namespace
    }
}

/// Writes `stringData` of a Secret as `data`, as the API does: a wish that still had it would never be what there is.
fn encode_texts(secret: &mut Value) {
    let texts = secret.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, text) in texts.iter().filter_map(Value::as_object).flatten() {
        let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        secret["data"][key] = json!(ByteString(bytes));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    #[test]
    fn the_texts_of_a_secret_are_what_the_api_keeps() {
        let given = json!({
            "metadata": {"name": "s"}, "data": {"a": "b2xk", "b": "b2xk"}, "stringData": {"a": "new", "c": ""},
        });
        let secret: Secret = serde_json::from_value(given).unwrap();
        let object = Child::new(&secret).unwrap().object;
        assert_eq!(object["data"], json!({"a": "bmV3", "b": "b2xk", "c": ""}));
        assert!(object.get("stringData").is_none());
    }
}
