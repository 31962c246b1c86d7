//! OpenAPI: what objects look like and what can be done with them, in the versions that clients read.

mod definitions;
mod language;
mod operation;
mod protobuf;
mod remote;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, EXPIRES, LOCATION},
};
use serde_json::{Map, Value, json};

use crate::{
    ApiError,
    aggregation::Remote,
    codec::{Body, Prepared, json_bytes},
    discovery::groups,
    query::Query,
    registry::{Catalog, Served},
};

/// Documents that are made when they are asked for and kept while they are true.
#[derive(Debug, Default)]
pub(crate) struct OpenApi {
    documents: Mutex<HashMap<String, Arc<Document>>>,
    whole: Mutex<Option<Whole>>,
    index: Mutex<Option<(Origin, Arc<Prepared>)>>,
}

/// The kinds that this server answers for, and what others said of theirs.
type Sources<'a> = (&'a Arc<Catalog>, &'a Arc<Vec<Remote>>);

/// What a document was made from.
#[derive(Clone, Debug)]
struct Origin(Arc<Catalog>, Arc<Vec<Remote>>);

impl Origin {
    fn of((catalog, remotes): Sources<'_>) -> Self {
        Self(Arc::clone(catalog), Arc::clone(remotes))
    }

    fn is(&self, (catalog, remotes): Sources<'_>) -> bool {
        Arc::ptr_eq(&self.0, catalog) && Arc::ptr_eq(&self.1, remotes)
    }
}

/// The document of everything, in both of its forms.
#[derive(Clone, Debug)]
struct Whole {
    made_from: Origin,
    json: Arc<Prepared>,
    protobuf: Arc<Prepared>,
}

/// The document of a group and version.
#[derive(Debug)]
struct Document {
    /// The kinds that it was made from.
    kinds: Vec<Served>,
    answer: Arc<Prepared>,
    /// The same in protobuf, made when it is asked for.
    protobuf: OnceLock<Arc<Prepared>>,
}

impl Document {
    /// The document in the form that a client wants.
    fn form(&self, form: Form) -> &Arc<Prepared> {
        match form {
            Form::Json => &self.answer,
            Form::Protobuf => self.protobuf.get_or_init(|| {
                let document: Value = serde_json::from_slice(self.answer.content()).unwrap_or_default();
                Prepared::new(protobuf::encode_v3(&document), protobuf::CONTENT_TYPE_V3)
            }),
        }
    }
}

impl OpenApi {
    /// Answers a path under `/openapi`; `None` for any other path.
    pub(crate) fn respond(
        &self,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
        sources: Sources<'_>,
    ) -> Option<Result<Response<Body>, ApiError>> {
        let rest = path.trim_end_matches('/').strip_prefix("/openapi/")?;
        let binary: &[&str] = match rest {
            "v2" => &protobuf::ACCEPTED_V2,
            // There is no such form of the list.
            "v3" => &[],
            _ => &protobuf::ACCEPTED_V3,
        };
        let Some(form) = form(headers, binary) else {
            return Some(Err(ApiError::not_acceptable(&["application/json"])));
        };
        Some(match (rest, form) {
            ("v2", Form::Protobuf) => Ok(self.whole(sources).protobuf.respond(headers)),
            ("v2", Form::Json) => Ok(self.whole(sources).json.respond(headers)),
            ("v3", _) => Ok(self.index(sources).respond(headers)),
            (rest, form) => match rest.strip_prefix("v3/").and_then(|name| self.document(name, sources.0)) {
                Some(document) => Ok(versioned(&document, form, path, (query, headers))),
                None => Err(ApiError::no_such_path()),
            },
        })
    }

    fn whole(&self, sources: Sources<'_>) -> Whole {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = whole.as_ref().filter(|known| known.made_from.is(sources)) {
            return known.clone();
        }
        let mut document = v2::document(sources.0);
        remote::add_paths(&mut document, sources.1);
        let made = Whole {
            made_from: Origin::of(sources),
            json: Prepared::new(json_bytes(&document), "application/json"),
            protobuf: Prepared::new(protobuf::encode_v2(&document), protobuf::CONTENT_TYPE_V2),
        };
        whole.insert(made).clone()
    }

    /// The list of documents, each with the hash of its content in its address.
    fn index(&self, sources: Sources<'_>) -> Arc<Prepared> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = index.as_ref().filter(|(made_from, _)| made_from.is(sources)) {
            return Arc::clone(known);
        }
        let mut paths: Map<String, Value> = names(sources.0)
            .into_iter()
            .filter_map(|name| {
                let document = self.document(&name, sources.0)?;
                let address = format!("/openapi/v3/{name}?hash={}", document.answer.hash());
                Some((name, json!({"serverRelativeURL": address})))
            })
            .collect();
        remote::add_names(&mut paths, sources.1);
        let made = Prepared::new(json_bytes(&json!({"paths": paths})), "application/json");
        *index = Some((Origin::of(sources), Arc::clone(&made)));
        made
    }

    /// The document of a name such as `apis/apps/v1`; `None` if there is no such name.
    fn document(&self, name: &str, catalog: &Catalog) -> Option<Arc<Document>> {
        let kinds = kinds(name, catalog)?;
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = documents.get(name)
            && same(&known.kinds, &kinds)
        {
            return Some(Arc::clone(known));
        }
        let references: Vec<&Served> = kinds.iter().collect();
        let content =
            if kinds.is_empty() { v3::empty_document(&format!("/{name}/")) } else { v3::document(&references) };
        let document =
            Arc::new(Document { kinds, answer: Prepared::new(content, "application/json"), protobuf: OnceLock::new() });
        documents.insert(name.to_owned(), Arc::clone(&document));
        // Documents of kinds that are gone are not kept.
        documents.retain(|name, _| self::kinds(name, catalog).is_some());
        Some(document)
    }
}

fn same(left: &[Served], right: &[Served]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.is_same(right))
}

/// The names of all documents.
fn names(catalog: &Catalog) -> Vec<String> {
    let mut names = vec!["api".to_owned(), "apis".to_owned(), "version".to_owned()];
    for group in groups(catalog) {
        if group.name.is_empty() {
            names.extend(group.versions.iter().map(|version| format!("api/{}", version.version)));
        } else {
            names.push(format!("apis/{}", group.name));
            names.extend(group.versions.iter().map(|version| format!("apis/{}/{}", group.name, version.version)));
        }
    }
    names
}

/// The kinds that a document is about; none for one without resources, `None` if there is no such document.
fn kinds(name: &str, catalog: &Catalog) -> Option<Vec<Served>> {
    let parts: Vec<&str> = name.split('/').collect();
    let (group, version) = match &parts[..] {
        ["api" | "apis" | "version"] => return Some(Vec::new()),
        ["apis", group] => return catalog.kinds().any(|kind| kind.group == *group).then(Vec::new),
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    let found = catalog.kinds().filter(|kind| kind.group == group && kind.version == version);
    let found: Vec<Served> = found.cloned().collect();
    (!found.is_empty()).then_some(found)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

/// The first form in the `Accept` header that there is; `binary` are the names of the one in protobuf.
fn form(headers: &HeaderMap, binary: &[&str]) -> Option<Form> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.trim().is_empty() {
        return Some(Form::Json);
    }
    accept.split(',').find_map(|clause| match clause.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/*" | "*/*" => Some(Form::Json),
        other => binary.contains(&other).then_some(Form::Protobuf),
    })
}

/// A document under its hash never changes; without one, or under an old one, clients are sent on or asked to check.
fn versioned(document: &Document, form: Form, path: &str, (query, headers): (&Query, &HeaderMap)) -> Response<Body> {
    let answer = document.form(form);
    match query.get("hash") {
        None => answer.respond(headers),
        Some(hash) if hash == document.answer.hash() => {
            let mut response = answer.respond(headers);
            let headers = response.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable, max-age=31536000"));
            headers.insert(EXPIRES, HeaderValue::from_static("Fri, 31 Dec 2100 00:00:00 GMT"));
            response
        }
        Some(_) => {
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            let address = format!("{path}?hash={}", document.answer.hash());
            let address = HeaderValue::from_str(&address).unwrap_or_else(|_| HeaderValue::from_static("/openapi/v3"));
            response.headers_mut().insert(LOCATION, address);
            response
        }
    }
}
