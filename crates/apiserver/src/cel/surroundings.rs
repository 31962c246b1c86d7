//! What expressions of admission see of a request beside the object: the types of `request` and `namespaceObject`.

use super::types::Type;

/// The type of `request`.
pub(super) fn request() -> Type {
    let kind = texts("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = texts("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let user = fields(&["username", "uid"], Type::Text).chain([
        ("groups".to_owned(), Type::list(Type::Text)),
        ("extra".to_owned(), Type::map(Type::Text, Type::list(Type::Text))),
    ]);
    let texts = ["subResource", "requestSubResource", "name", "namespace", "operation"];
    let members = [
        ("kind", kind.clone()),
        ("requestKind", kind),
        ("resource", resource.clone()),
        ("requestResource", resource),
        ("userInfo", Type::structure("kubernetes.UserInfo", user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    let members = members.into_iter().map(|(name, found)| (name.to_owned(), found));
    Type::structure("kubernetes.AdmissionRequest", members.chain(fields(&texts, Type::Text)))
}

/// The type of `namespaceObject`.
pub(super) fn namespace() -> Type {
    let labels = Type::map(Type::Text, Type::Text);
    let metadata = fields(&["name", "generateName", "namespace", "UID", "resourceVersion"], Type::Text)
        .chain(fields(&["labels", "annotations"], labels))
        .chain(fields(&["creationTimestamp", "deletionTimestamp"], Type::Timestamp))
        .chain(fields(&["deletionGracePeriodSeconds", "generation"], Type::Int))
        .chain(fields(&["finalizers"], Type::list(Type::Text)));
    let condition = fields(&["status", "type", "message", "reason"], Type::Text)
        .chain(fields(&["lastTransitionTime"], Type::Timestamp));
    let conditions = Type::list(Type::structure("kubernetes.NamespaceCondition", condition));
    let status = fields(&["phase"], Type::Text).chain(fields(&["conditions"], conditions));
    let spec = fields(&["finalizers"], Type::list(Type::Text));
    let members = [
        ("metadata", Type::structure("kubernetes.NamespaceMetadata", metadata)),
        ("spec", Type::structure("kubernetes.NamespaceSpec", spec)),
        ("status", Type::structure("kubernetes.NamespaceStatus", status)),
    ];
    Type::structure("kubernetes.Namespace", members.into_iter().map(|(name, found)| (name.to_owned(), found)))
}

fn texts(name: &str, names: &[&str]) -> Type {
    Type::structure(name, fields(names, Type::Text))
}

fn fields(names: &[&str], found: Type) -> impl Iterator<Item = (String, Type)> {
    let fields: Vec<_> = names.iter().map(|name| ((*name).to_owned(), found.clone())).collect();
    fields.into_iter()
}
