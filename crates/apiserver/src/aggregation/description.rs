//! What another server says of its kinds in OpenAPI, as far as it is about the group and version that it answers for.

use std::{collections::BTreeSet, sync::Arc};

use http::HeaderValue;
use serde_json::{Map, Value};

use super::{
    extension::{Extensions, Told},
    remote::Remote,
};

/// Where a document of v2 has its definitions and its parameters.
const DEFINITIONS: &str = "#/definitions/";
const PARAMETERS: &str = "#/parameters/";

/// What a server says of its kinds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// Where its document of v3 is; none if it has none.
    pub(crate) document: Option<String>,
    /// What it has at its paths, by the language of v2.
    pub(crate) paths: Map<String, Value>,
    /// The definitions that those speak of; each after the ones that it speaks of itself, as far as that can be.
    pub(crate) definitions: Vec<(String, Value)>,
    /// The tag of the document of v2.
    tag: Option<HeaderValue>,
}

impl Description {
    /// Asks the server.
    ///
    /// # Errors
    /// Why it has nothing to say.
    pub(super) async fn of(remote: &Remote, extensions: &Extensions) -> Result<Arc<Self>, String> {
        let index = extensions.ask(&remote.target, "/openapi/v3").await;
        let document = index.as_ref().ok().and_then(|index| document(index, &remote.document_name()));
        let known = remote.description.as_ref();
        let tag = known.and_then(|known| known.tag.as_ref());
        match extensions.ask_again(&remote.target, "/openapi/v2", tag).await {
            Ok(Told::Document(whole, tag)) => {
                let description = Self { document, tag, ..Self::read(whole, &format!("/{}/", remote.document_name())) };
                Ok(Arc::new(description))
            }
            Ok(Told::Same) => match known {
                Some(known) if known.document == document => Ok(Arc::clone(known)),
                Some(known) => Ok(Arc::new(known.with_document(document))),
                None => Err("the server says that nothing changed, and nothing is known".to_owned()),
            },
            Err(_) if document.is_some() => Ok(Arc::new(Self { document, ..Self::default() })),
            Err(why) => Err(why),
        }
    }

    fn with_document(&self, document: Option<String>) -> Self {
        let (paths, definitions) = (self.paths.clone(), self.definitions.clone());
        Self { document, paths, definitions, tag: self.tag.clone() }
    }

    /// Reads a document of v2: the paths that begin with `prefix`, and the definitions that those speak of or that no
    /// path spoke of at all.
    fn read(mut whole: Value, prefix: &str) -> Self {
        let mut take = |section: &str| match whole[section].take() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let (mut all, mut definitions, parameters) = (take("paths"), take("definitions"), take("parameters"));
        all.values_mut().for_each(|item| write_out(item, &parameters));
        let spoken_of: BTreeSet<String> =
            leaves_first(all.values().flat_map(references), &definitions).into_iter().collect();
        all.retain(|path, _| path.starts_with(prefix));
        let unused = definitions.keys().filter(|name| !spoken_of.contains(*name)).map(String::as_str);
        let wanted = leaves_first(all.values().flat_map(references).chain(unused), &definitions);
        let take = |name: String| definitions.remove(&name).map(|definition| (name, definition));
        Self { paths: all, definitions: wanted.into_iter().filter_map(take).collect(), ..Self::default() }
    }
}

/// The address of a document in an index of v3.
fn document(index: &Value, name: &str) -> Option<String> {
    let address = index["paths"][name]["serverRelativeURL"].as_str()?;
    address.starts_with(&format!("/openapi/v3/{name}")).then(|| address.to_owned())
}

/// Writes parameters where they are referred to, so that a document needs no list of them.
fn write_out(item: &mut Value, parameters: &Map<String, Value>) {
    match item {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(|name| name.as_str()?.strip_prefix(PARAMETERS));
            match name.and_then(|name| parameters.get(name)) {
                Some(parameter) => *item = parameter.clone(),
                None => members.values_mut().for_each(|member| write_out(member, parameters)),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| write_out(item, parameters)),
        _ => {}
    }
}

/// The names of the definitions that a value speaks of.
fn references(value: &Value) -> Vec<&str> {
    let (mut found, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(|name| name.as_str()?.strip_prefix(DEFINITIONS)));
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// The names of the definitions that one comes to from `roots`; those that others speak of come first.
fn leaves_first<'a>(roots: impl Iterator<Item = &'a str>, definitions: &'a Map<String, Value>) -> Vec<String> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open: Vec<(&str, bool)> = roots.map(|name| (name, false)).collect();
    while let Some((name, is_done)) = open.pop() {
        if is_done {
            order.push(name.to_owned());
        } else if let Some(definition) = definitions.get(name)
            && seen.insert(name)
        {
            open.push((name, true));
            open.extend(references(definition).into_iter().map(|name| (name, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_belongs_to_the_group_is_kept() {
        let path = |name: &str| json!({"get": {"parameters": [{"$ref": "#/parameters/p"}], "responses": {"200": {"schema": {"$ref": format!("#/definitions/{name}")}}}}});
        let whole = json!({
            "paths": {"/apis/a/v1/things": path("Thing"), "/apis/a/v2/things": path("Other"), "/version/": path("Version")},
            "parameters": {"p": {"in": "query", "name": "pretty"}},
            "definitions": {
                "Thing": {"properties": {"spec": {"$ref": "#/definitions/Spec"}}}, "Spec": {"type": "object"},
                "Other": {}, "Version": {}, "Unused": {},
            },
        });
        let read = Description::read(whole, "/apis/a/v1/");
        assert_eq!(read.paths.keys().collect::<Vec<_>>(), ["/apis/a/v1/things"]);
        let names: Vec<_> = read.definitions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Unused", "Spec", "Thing"]);
        assert_eq!(read.paths["/apis/a/v1/things"]["get"]["parameters"][0]["name"], "pretty");
    }

    #[test]
    fn addresses_elsewhere_do_not_count() {
        let index = |address: &str| json!({"paths": {"apis/a/v1": {"serverRelativeURL": address}}});
        let good = "/openapi/v3/apis/a/v1?hash=X";
        assert_eq!(document(&index(good), "apis/a/v1").as_deref(), Some(good));
        assert_eq!(document(&index("/other"), "apis/a/v1"), None);
        assert_eq!(document(&index(good), "apis/a/v2"), None);
    }
}
