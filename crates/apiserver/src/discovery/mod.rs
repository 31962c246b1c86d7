//! Discovery: which groups, versions and resources there are.

mod aggregated;
mod groups;
mod legacy;
mod negotiate;
mod remote;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderValue, Response, header::CACHE_CONTROL};
use serde_json::Value;
use windlass_schema::protobuf;

use crate::{
    ApiError, Config,
    aggregation::Remote,
    codec::{Body, Prepared, json_bytes},
    registry::Catalog,
};

pub(crate) use groups::groups;
use negotiate::{Form, form};

/// The kinds that this server answers for, and the groups that others do.
type Sources<'a> = (&'a Arc<Catalog>, &'a Arc<Vec<Remote>>);

/// Documents that are made when they are asked for and kept while they are true.
#[derive(Debug, Default)]
pub(crate) struct Discovery(Mutex<Option<Cached>>);

#[derive(Debug)]
struct Cached {
    made_from: (Arc<Catalog>, Arc<Vec<Remote>>),
    documents: HashMap<String, Arc<Prepared>>,
}

impl Discovery {
    /// Answers a path of discovery; `None` for any other path.
    pub(crate) fn respond(
        &self,
        path: &str,
        headers: &HeaderMap,
        sources: Sources<'_>,
        config: &Config,
    ) -> Option<Result<Response<Body>, ApiError>> {
        let path = path.trim_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        if !matches!(parts[..], ["api" | "apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _]) {
            return None;
        }
        Some(form(headers).and_then(|form| {
            let whole = parts.len() == 1 && config.aggregated_discovery;
            let form = match form {
                Form::Aggregated(_) if !whole => Form::Plain,
                form => form,
            };
            let document = self.document(sources, path, form, &config.address).ok_or_else(ApiError::no_such_path)?;
            let mut response = document.respond(headers);
            if matches!(form, Form::Plain | Form::Binary) {
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
            }
            Ok(response)
        }))
    }

    fn document(&self, sources: Sources<'_>, path: &str, form: Form, address: &str) -> Option<Arc<Prepared>> {
        let (catalog, remotes) = sources;
        let current =
            |cached: &Cached| Arc::ptr_eq(&cached.made_from.0, catalog) && Arc::ptr_eq(&cached.made_from.1, remotes);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = match cached.take().filter(current) {
            Some(current) => cached.insert(current),
            None => {
                let made_from = (Arc::clone(catalog), Arc::clone(remotes));
                cached.insert(Cached { made_from, documents: HashMap::new() })
            }
        };
        let key = format!("{form:?} {path}");
        if let Some(known) = cached.documents.get(&key) {
            return Some(Arc::clone(known));
        }
        let (value, content_type) = match form {
            Form::Plain => (plain(catalog, remotes, path, address)?, "application/json"),
            Form::Binary => {
                let value = plain(catalog, remotes, path, address)?;
                // What has no form in protobuf is sent as JSON; clients read the type of the answer.
                if let Ok(bytes) = protobuf::encode(&value) {
                    let made = Prepared::new(bytes, protobuf::CONTENT_TYPE);
                    cached.documents.insert(key, Arc::clone(&made));
                    return Some(made);
                }
                (value, "application/json")
            }
            Form::Aggregated(version) => {
                let mut list = aggregated::list(catalog, path == "api", version);
                if path == "apis" {
                    remote::add_items(&mut list, remotes);
                }
                (list, version.content_type())
            }
        };
        let made = Prepared::new(json_bytes(&value), content_type);
        cached.documents.insert(key, Arc::clone(&made));
        Some(made)
    }
}

/// The document at a path, for clients that know no other form.
fn plain(catalog: &Catalog, remotes: &[Remote], path: &str, address: &str) -> Option<Value> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["api"] => Some(legacy::versions(address)),
        ["apis"] => {
            let mut list = legacy::groups(catalog);
            remote::add_groups(&mut list, remotes);
            Some(list)
        }
        ["api", version] => legacy::resources(catalog, "", version),
        ["apis", group] => remote::with_versions(legacy::group(catalog, group), group, remotes),
        ["apis", group, version] => legacy::resources(catalog, group, version),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
