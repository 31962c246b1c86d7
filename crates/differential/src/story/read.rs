//! Requests that change nothing.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::super::call::Call;
use super::Kind;

/// Asks for a table.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// Asks for metadata alone.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";

/// Asks for a list of metadata alone.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// One object, in some version and form.
pub(super) fn get(kind: &Kind, path: &str, random: &mut StdRng) -> Call {
    let accept = ["application/json", TABLE, METADATA].choose(random).copied().unwrap_or(TABLE);
    let path = match kind.also.choose(random) {
        Some(also) => path.replacen(&kind.path, also, 1),
        None => path.to_owned(),
    };
    Call { accept, ..Call::new("get", "GET", path, None) }
}

/// All objects, by some option that matters or is wrong.
pub(super) fn list(kind: &Kind, random: &mut StdRng) -> Call {
    let queries = [
        "labelSelector=app%3Da",
        "labelSelector=app+in+(a,b),!gone",
        "labelSelector=app%3D%3D%3D",
        "limit=1&labelSelector=no",
        "fieldSelector=metadata.name%3Dnone",
        "fieldSelector=spec.nope%3D1",
        "resourceVersion=0&labelSelector=no",
        "resourceVersion=abc",
        "limit=-1",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1&labelSelector=no",
        "resourceVersionMatch=Sideways&resourceVersion=1",
        "continue=garbage",
        "sendInitialEvents=true",
        "timeoutSeconds=x",
        "watch=true&sendInitialEvents=true",
        "watch=true&resourceVersion=abc",
        "watch=true&resourceVersionMatch=Exact&resourceVersion=1",
        "watch=true&fieldSelector=spec.nope%3D1",
        "watch=true&labelSelector=a%3D%3D%3D",
        "watch=true&continue=abc&timeoutSeconds=1",
    ];
    let query = queries.choose(random).unwrap_or(&"");
    Call::new("list", "GET", format!("{}?{query}", kind.path), None)
}
