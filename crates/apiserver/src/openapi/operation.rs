//! The operations of a kind, from the facts of discovery.

use windlass_schema::{Kind, Subresource, builtin};

use super::definitions;
use crate::registry::Served;

/// A path and what can be done there.
#[derive(Debug)]
pub(super) struct PathItem {
    pub(super) path: String,
    /// The names in the path: `name`, `namespace`.
    pub(super) names: Vec<&'static str>,
    pub(super) operations: Vec<Operation>,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) action: &'static str,
    /// Group, version and kind of what it is about.
    pub(super) about: (String, String, String),
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<RequestBody>,
    pub(super) answer: Answer,
}

/// What a request carries.
#[derive(Debug)]
pub(super) struct RequestBody {
    /// The name of the definition.
    pub(super) definition: String,
    pub(super) media_types: &'static [&'static str],
    pub(super) required: bool,
}

/// What an answer carries.
#[derive(Debug)]
pub(super) struct Answer {
    /// The name of the definition; none for a text.
    pub(super) definition: Option<String>,
    pub(super) media_types: &'static [&'static str],
    pub(super) codes: &'static [(&'static str, &'static str)],
}

/// A parameter of the query: its name and type.
pub(super) type Parameter = (&'static str, &'static str);

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const OK: &[(&str, &str)] = &[("200", "OK")];
const CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
const POSTED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];
const DELETED: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];

const JSON: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const JSON_CUSTOM: &[&str] = &["application/json", "application/yaml"];
const STREAM: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const ANY: &[&str] = &["*/*"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
const PATCHES_CUSTOM: &[&str] =
    &["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

const WRITE: &[Parameter] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: &[Parameter] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: &[Parameter] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const LIST: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE_COLLECTION: &[Parameter] = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];
const LOG: &[Parameter] = &[
    ("container", "string"),
    ("follow", "boolean"),
    ("insecureSkipTLSVerifyBackend", "boolean"),
    ("limitBytes", "integer"),
    ("previous", "boolean"),
    ("sinceSeconds", "integer"),
    ("stream", "string"),
    ("tailLines", "integer"),
    ("timestamps", "boolean"),
];
const STREAMS: &[Parameter] = &[
    ("command", "string"),
    ("container", "string"),
    ("stderr", "boolean"),
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("tty", "boolean"),
];

/// The paths of a kind.
pub(super) fn paths(kind: &Served) -> Vec<PathItem> {
    let maker = Maker { kind, custom: kind.custom().is_some() };
    let root = root(kind);
    let namespaced = if kind.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
    let plural = &kind.plural;
    let mut items = vec![PathItem {
        path: format!("{namespaced}/{plural}"),
        names: if kind.namespaced { vec!["namespace"] } else { Vec::new() },
        operations: maker.collection(),
    }];
    if kind.namespaced && kind.has_verb("list") {
        let operations = vec![maker.list(true)];
        items.push(PathItem { path: format!("{root}/{plural}"), names: Vec::new(), operations });
    }
    let names = if kind.namespaced { vec!["name", "namespace"] } else { vec!["name"] };
    let item = format!("{namespaced}/{plural}/{{name}}");
    items.push(PathItem { path: item.clone(), names: names.clone(), operations: maker.item() });
    for part in &kind.subresources {
        let operations = maker.part(part);
        items.push(PathItem { path: format!("{item}/{}", part.name), names: names.clone(), operations });
    }
    items.retain(|item| !item.operations.is_empty());
    items
}

/// The path of a group and version.
pub(super) fn root(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    }
}

struct Maker<'a> {
    kind: &'a Served,
    custom: bool,
}

impl Maker<'_> {
    fn id(&self, verb: &str, part: &str) -> String {
        let scope = if self.kind.namespaced { "Namespaced" } else { "" };
        format!("{verb}{}{scope}{}{part}", camel(&self.kind.group, &self.kind.version), self.kind.kind().kind)
    }

    fn about(&self) -> (String, String, String) {
        (self.kind.group.clone(), self.kind.version.clone(), self.kind.kind().kind.clone())
    }

    fn answer(&self, definition: String, codes: &'static [(&'static str, &'static str)]) -> Answer {
        Answer { definition: Some(definition), media_types: if self.custom { JSON_CUSTOM } else { JSON }, codes }
    }

    fn patch_body(&self) -> RequestBody {
        let media_types = if self.custom { PATCHES_CUSTOM } else { PATCHES };
        RequestBody { definition: format!("{META}.Patch"), media_types, required: true }
    }

    fn list(&self, all_namespaces: bool) -> Operation {
        let suffix = if all_namespaces { "ForAllNamespaces" } else { "" };
        let id = if all_namespaces {
            format!("list{}{}{suffix}", camel(&self.kind.group, &self.kind.version), self.kind.kind().kind)
        } else {
            self.id("list", "")
        };
        Operation {
            method: "get",
            id,
            action: "list",
            about: self.about(),
            parameters: LIST,
            body: None,
            answer: Answer {
                media_types: if self.custom { JSON_CUSTOM } else { STREAM },
                ..self.answer(definitions::list_name(self.kind), OK)
            },
        }
    }

    fn collection(&self) -> Vec<Operation> {
        let own = definitions::name(self.kind);
        let mut operations = Vec::new();
        if self.kind.has_verb("list") {
            operations.push(self.list(false));
        }
        if self.kind.has_verb("create") {
            operations.push(Operation {
                method: "post",
                id: self.id("create", ""),
                action: "post",
                about: self.about(),
                parameters: WRITE,
                body: Some(RequestBody { definition: own.clone(), media_types: ANY, required: true }),
                answer: self.answer(own, POSTED),
            });
        }
        if self.kind.has_verb("deletecollection") {
            let id = self.id("delete", "");
            let at = format!("delete{}", camel(&self.kind.group, &self.kind.version)).len();
            operations.push(Operation {
                method: "delete",
                id: format!("{}Collection{}", &id[..at], &id[at..]),
                action: "deletecollection",
                about: self.about(),
                parameters: DELETE_COLLECTION,
                body: Some(delete_options()),
                answer: self.answer(format!("{META}.Status"), OK),
            });
        }
        operations
    }

    fn item(&self) -> Vec<Operation> {
        let own = definitions::name(self.kind);
        let mut operations = Vec::new();
        if self.kind.has_verb("get") {
            operations.push(self.read(self.about(), self.answer(own.clone(), OK), ""));
        }
        if self.kind.has_verb("update") {
            operations.push(self.write("put", self.about(), &own, ""));
        }
        if self.kind.has_verb("patch") {
            operations.push(self.write("patch", self.about(), &own, ""));
        }
        if self.kind.has_verb("delete") {
            operations.push(Operation {
                method: "delete",
                id: self.id("delete", ""),
                action: "delete",
                about: self.about(),
                parameters: DELETE,
                body: Some(delete_options()),
                answer: self.answer(format!("{META}.Status"), DELETED),
            });
        }
        operations
    }

    fn read(&self, about: (String, String, String), answer: Answer, part: &str) -> Operation {
        Operation {
            method: "get",
            id: self.id("read", part),
            action: "get",
            about,
            parameters: &[],
            body: None,
            answer,
        }
    }

    fn write(&self, method: &'static str, about: (String, String, String), own: &str, part: &str) -> Operation {
        let (verb, parameters, body) = match method {
            "patch" => ("patch", PATCH, self.patch_body()),
            _ => ("replace", WRITE, RequestBody { definition: own.to_owned(), media_types: ANY, required: true }),
        };
        Operation {
            method,
            id: self.id(verb, part),
            action: method,
            about,
            parameters,
            body: Some(body),
            answer: self.answer(own.to_owned(), CREATED),
        }
    }

    fn part(&self, part: &Subresource) -> Vec<Operation> {
        let about = (part.group.clone(), part.version.clone(), part.kind.clone());
        let suffix = capital(&part.name);
        let has = |verb: &str| part.verbs.iter().any(|known| known == verb);
        if part.kind.ends_with("Options") {
            return self.connect(part, &about);
        }
        let own = if (part.group.as_str(), part.kind.as_str()) == (&self.kind.group, &self.kind.kind().kind) {
            definitions::name(self.kind)
        } else {
            builtin()
                .definition_name(&part.group, &part.version, &part.kind)
                .unwrap_or_else(|| format!("{META}.Status"))
        };
        if part.name == "log" {
            let text = Answer { definition: None, media_types: &["text/plain"], codes: OK };
            let operation = self.read(about, text, &suffix);
            return vec![Operation { parameters: LOG, ..operation }];
        }
        let mut operations = Vec::new();
        if has("get") {
            operations.push(self.read(about.clone(), self.answer(own.clone(), OK), &suffix));
        }
        if has("update") {
            operations.push(self.write("put", about.clone(), &own, &suffix));
        }
        if has("patch") {
            operations.push(self.write("patch", about.clone(), &own, &suffix));
        }
        if has("create") {
            operations.push(Operation {
                method: "post",
                id: self.id("create", &suffix),
                action: "post",
                about,
                parameters: WRITE,
                body: Some(RequestBody { definition: own.clone(), media_types: ANY, required: true }),
                answer: self.answer(own, POSTED),
            });
        }
        operations
    }

    fn connect(&self, part: &Subresource, about: &(String, String, String)) -> Vec<Operation> {
        let methods = [("get", "get"), ("create", "post"), ("update", "put"), ("patch", "patch"), ("delete", "delete")];
        let offered = methods.into_iter().filter(|(verb, _)| part.verbs.iter().any(|known| known == verb));
        let parameters = if matches!(part.name.as_str(), "exec" | "attach") { STREAMS } else { &[] };
        offered
            .map(|(_, method)| Operation {
                method,
                id: self.id(&format!("connect{}", capital(method)), &capital(&part.name)),
                action: "connect",
                about: about.clone(),
                parameters,
                body: None,
                answer: Answer { definition: None, media_types: ANY, codes: OK },
            })
            .collect()
    }
}

fn delete_options() -> RequestBody {
    RequestBody { definition: format!("{META}.DeleteOptions"), media_types: ANY, required: false }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Group and version as operations are named: `AppsV1`, `CoreV1`, `CacheExampleComV1alpha1`.
pub(super) fn camel(group: &str, version: &str) -> String {
    let group = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").map_or(group, |group| group.trim_end_matches(".authorization")),
    };
    let words = group.split(['.', '-']).map(capital).collect::<String>();
    format!("{words}{}", capital(version))
}
