//! What form of answer a client accepts.

use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT},
};

use windlass_schema::protobuf::CONTENT_TYPE;

use crate::{ApiError, query::Query};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Yaml,
    /// Kubernetes' protobuf encoding.
    Protobuf,
}

/// What the object is turned into first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
    /// Nothing: the object as it is.
    None,
    /// A table, in this version of `meta.k8s.io`.
    Table(String),
    /// Only the metadata, in this version of `meta.k8s.io`.
    Metadata(String),
    /// Only the metadata of a list, in this version of `meta.k8s.io`.
    MetadataList(String),
}

/// What a client accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) form: Form,
    pub(crate) transform: Transform,
    pub(crate) pretty: bool,
    pub(crate) gzip: bool,
}

/// The media types that answers come in.
pub(crate) const ANSWER_TYPES: [&str; 3] = ["application/json", "application/yaml", CONTENT_TYPE];

impl Accept {
    /// JSON, without anything special.
    pub(crate) const JSON: Accept = Accept { form: Form::Json, transform: Transform::None, pretty: false, gzip: false };

    /// Reads the headers of a request about a built-in kind; the first clause that can be served wins.
    pub(crate) fn new(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        Self::negotiate(headers, query, |_| true)
    }

    /// The same for a custom kind, of which only the metadata has a protobuf form.
    pub(crate) fn of_custom(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        Self::negotiate(headers, query, |found| *found != (Form::Protobuf, Transform::None))
    }

    fn negotiate(
        headers: &HeaderMap,
        query: &Query,
        is_served: fn(&(Form, Transform)) -> bool,
    ) -> Result<Self, ApiError> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let clauses = header(ACCEPT);
        let (form, transform) = match clauses.trim() {
            "" => (Form::Json, Transform::None),
            clauses => clauses
                .split(',')
                .filter_map(clause)
                .find(is_served)
                .ok_or_else(|| ApiError::not_acceptable(&ANSWER_TYPES))?,
        };
        let gzip = header(ACCEPT_ENCODING).split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"));
        Ok(Self { form, transform, pretty: is_pretty(query, header(USER_AGENT)), gzip })
    }
}

/// People read the answers to these programs.
fn is_pretty(query: &Query, user_agent: &str) -> bool {
    match query.get("pretty") {
        Some(value) => !matches!(value, "false" | "0"),
        None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|program| user_agent.starts_with(program)),
    }
}

fn clause(text: &str) -> Option<(Form, Transform)> {
    let mut parts = text.split(';').map(str::trim);
    let form = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Form::Json,
        "application/yaml" => Form::Yaml,
        CONTENT_TYPE => Form::Protobuf,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            _ => {}
        }
    }
    let transform = match (kind, group, version) {
        ("", ..) => Transform::None,
        // Tables have no protobuf form.
        ("Table", ..) if form == Form::Protobuf => return None,
        ("Table", "meta.k8s.io", "v1" | "v1beta1") => Transform::Table(version.into()),
        ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => Transform::Metadata(version.into()),
        ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => Transform::MetadataList(version.into()),
        _ => return None,
    };
    Some((form, transform))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str) -> Result<(Form, Transform), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        let accept = Accept::new(&headers, &Query::default()).map_err(|error| error.code.as_u16())?;
        Ok((accept.form, accept.transform))
    }

    #[test]
    fn only_the_metadata_of_custom_kinds_has_a_protobuf_form() {
        let accept = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            Accept::of_custom(&headers, &Query::default())
                .map(|accept| accept.form)
                .map_err(|error| error.code.as_u16())
        };
        assert_eq!(accept("application/vnd.kubernetes.protobuf, application/json"), Ok(Form::Json));
        assert_eq!(accept("application/vnd.kubernetes.protobuf"), Err(406));
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(accept(metadata), Ok(Form::Protobuf));
    }

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table), Ok((Form::Json, Transform::Table("v1".into()))));
        assert_eq!(accept("application/json;as=Other;v=v1;g=x, application/json"), Ok((Form::Json, Transform::None)));
        assert_eq!(accept("application/vnd.kubernetes.protobuf, */*"), Ok((Form::Protobuf, Transform::None)));
        assert_eq!(
            accept("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json"),
            Ok((Form::Json, Transform::None))
        );
        assert_eq!(accept("text/html, application/yaml;q=0.9"), Ok((Form::Yaml, Transform::None)));
        assert_eq!(accept(""), Ok((Form::Json, Transform::None)));
        assert_eq!(accept("text/html"), Err(406));
        assert_eq!(accept("application/json;as=Table;v=v9;g=meta.k8s.io"), Err(406));
    }
}
