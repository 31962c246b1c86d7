//! What the merge algorithms ask of a schema.

use serde_json::Value;
use windlass_merge::{ListType, MapType, Member, PatchStrategy, Shape, ValueType};

use crate::Schema;
use crate::node::Additional;

/// The definition of a value that is kept as it is, whatever it holds.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Definitions of values that may be text or a number, or anything.
const WRITTEN_SEVERAL_WAYS: [&str; 4] = [
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    RAW_EXTENSION,
];

impl Shape for Schema {
    fn field(&self, name: &str) -> Option<Schema> {
        self.member(name).cloned()
    }

    fn membership(&self, name: &str) -> Member {
        let words = &self.node().words;
        let embedded = self.is_embedded_resource() && matches!(name, "apiVersion" | "kind" | "metadata");
        let open = matches!(words.additional_properties, Some(Additional::Of(_) | Additional::Any(true)))
            || self.preserves_unknown_fields()
            || words.properties.is_empty();
        match words.properties.contains_key(name) || embedded {
            true => Member::Declared,
            false if open => Member::Free,
            false => Member::Undeclared,
        }
    }

    fn item(&self) -> Option<Schema> {
        self.items().cloned()
    }

    fn map_type(&self) -> MapType {
        let written = self.here().words.map_type.as_deref();
        match written.or_else(|| self.node().words.map_type.as_deref()) {
            Some("atomic") => MapType::Atomic,
            None if self.definition_name() == Some(RAW_EXTENSION) => MapType::Atomic,
            _ => MapType::Granular,
        }
    }

    fn list_type(&self) -> ListType<'_> {
        let node = self.here();
        match (node.is_associative, node.map_keys.as_slice()) {
            (false, _) => ListType::Atomic,
            (true, []) => ListType::Set,
            (true, keys) => ListType::Map(keys),
        }
    }

    fn field_default(&self, name: &str) -> Option<Value> {
        self.member(name)?.default_value().cloned()
    }

    fn patch_strategy(&self) -> PatchStrategy<'_> {
        let words = &self.here().words;
        let strategies = words.patch_strategy.as_deref().unwrap_or_default();
        let has = |wanted: &str| strategies.split(',').any(|strategy| strategy == wanted);
        PatchStrategy {
            merge: has("merge"),
            merge_key: words.patch_merge_key.as_deref(),
            retain_keys: has("retainKeys"),
            replace: has("replace"),
        }
    }

    fn value_type(&self) -> Option<ValueType> {
        let leaf = self.definition_name().is_some_and(|name| WRITTEN_SEVERAL_WAYS.contains(&name));
        if leaf || self.is_int_or_string() {
            return None;
        }
        ValueType::of_schema(self.type_name()?, self.node().words.format.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod_spec() -> Schema {
        Schema::of_definition("io.k8s.api.core.v1.PodSpec")
    }

    #[test]
    fn lists_of_built_in_kinds_know_their_keys() {
        let containers = pod_spec().field("containers").unwrap();
        assert_eq!(containers.list_type(), ListType::Map(&["name".to_owned()]));
        let ports = containers.item().unwrap().field("ports").unwrap();
        assert_eq!(ports.list_type(), ListType::Map(&["containerPort".to_owned(), "protocol".to_owned()]));
        assert_eq!(ports.item().unwrap().field_default("protocol"), Some("TCP".into()));
        assert_eq!(pod_spec().field("tolerations").unwrap().list_type(), ListType::Atomic);
        let meta = Schema::of_definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        assert_eq!(meta.field("finalizers").unwrap().list_type(), ListType::Set);
        assert!(meta.field("labels").unwrap().field("any").is_some());
    }

    #[test]
    fn atomic_maps_are_atomic_through_a_reference() {
        let deployment = Schema::of_definition("io.k8s.api.apps.v1.DeploymentSpec");
        assert_eq!(deployment.field("selector").unwrap().map_type(), MapType::Atomic);
        assert_eq!(pod_spec().field("nodeSelector").unwrap().map_type(), MapType::Atomic);
        assert_eq!(pod_spec().map_type(), MapType::Granular);
        let revision = Schema::of_definition("io.k8s.api.apps.v1.ControllerRevision");
        assert_eq!(revision.field("data").unwrap().map_type(), MapType::Atomic);
    }

    #[test]
    fn members_are_declared_free_or_unknown() {
        assert_eq!(pod_spec().membership("containers"), Member::Declared);
        assert_eq!(pod_spec().membership("container"), Member::Undeclared);
        let meta = Schema::of_definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        assert_eq!(meta.field("labels").unwrap().membership("any"), Member::Free);
    }

    #[test]
    fn strategies_of_strategic_patches_are_known() {
        let strategy = pod_spec();
        let volumes = strategy.field("volumes").unwrap();
        let expect = PatchStrategy { merge: true, merge_key: Some("name"), retain_keys: true, replace: false };
        assert_eq!(volumes.patch_strategy(), expect);
        let deployment = Schema::of_definition("io.k8s.api.apps.v1.DeploymentSpec").field("strategy").unwrap();
        assert!(deployment.patch_strategy().retain_keys && !deployment.patch_strategy().merge);
    }
}
