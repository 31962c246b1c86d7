//! Discovery: which groups, versions and resources there are.

mod aggregated;
mod groups;
mod legacy;
mod negotiate;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderValue, Response, header::CACHE_CONTROL};
use serde_json::Value;

use crate::{
    ApiError, Config,
    codec::{Body, Prepared, json_bytes},
    registry::Catalog,
};

pub(crate) use groups::{Group, groups};
use negotiate::{Form, form};

/// Documents that are made when they are asked for and kept while they are true.
#[derive(Debug, Default)]
pub(crate) struct Discovery(Mutex<Option<Cached>>);

#[derive(Debug)]
struct Cached {
    made_from: Arc<Catalog>,
    documents: HashMap<String, Arc<Prepared>>,
}

impl Discovery {
    /// Answers a path of discovery; `None` for any other path.
    pub(crate) fn respond(
        &self,
        path: &str,
        headers: &HeaderMap,
        catalog: &Arc<Catalog>,
        config: &Config,
    ) -> Option<Result<Response<Body>, ApiError>> {
        let path = path.trim_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        if !matches!(parts[..], ["api" | "apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _]) {
            return None;
        }
        Some(form(headers).and_then(|form| {
            let whole = parts.len() == 1 && config.aggregated_discovery;
            let form = if whole { form } else { Form::Plain };
            let document = self.document(catalog, path, form, &config.address).ok_or_else(ApiError::no_such_path)?;
            let mut response = document.respond(headers);
            if form == Form::Plain {
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
            }
            Ok(response)
        }))
    }

    fn document(&self, catalog: &Arc<Catalog>, path: &str, form: Form, address: &str) -> Option<Arc<Prepared>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = match cached.take().filter(|cached| Arc::ptr_eq(&cached.made_from, catalog)) {
            Some(current) => cached.insert(current),
            None => cached.insert(Cached { made_from: Arc::clone(catalog), documents: HashMap::new() }),
        };
        let key = format!("{form:?} {path}");
        if let Some(known) = cached.documents.get(&key) {
            return Some(Arc::clone(known));
        }
        let (value, content_type) = match form {
            Form::Plain => (plain(catalog, path, address)?, "application/json"),
            Form::Aggregated(version) => (aggregated::list(catalog, path == "api", version), version.content_type()),
        };
        let made = Prepared::new(json_bytes(&value), content_type);
        cached.documents.insert(key, Arc::clone(&made));
        Some(made)
    }
}

/// The document at a path, for clients that know no other form.
fn plain(catalog: &Catalog, path: &str, address: &str) -> Option<Value> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["api"] => Some(legacy::versions(address)),
        ["apis"] => Some(legacy::groups(catalog)),
        ["api", version] => legacy::resources(catalog, "", version),
        ["apis", group] => legacy::group(catalog, group),
        ["apis", group, version] => legacy::resources(catalog, group, version),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
