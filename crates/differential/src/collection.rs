//! Stories about several objects: pages, selectors, and the end of all at once.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::call::Call;
use super::story::{Kind, METADATA, METADATA_LIST, TABLE};

/// How many objects there are.
pub(super) const OBJECTS: usize = 5;
/// Pages that are asked for, at most.
pub(super) const PAGES_MAX: usize = 8;

/// The objects, each with a group of its own and a name of the story.
pub(super) fn objects(kind: &Kind, story: &str) -> Vec<Call> {
    let object = |number: usize| {
        let labels = json!({"app": if number < 3 { "a" } else { "b" }, "number": number.to_string(), "story": story});
        let object = kind.object(&format!("{story}-{number}"), &labels);
        Call::new("create", "POST", kind.path.clone(), Some(object))
    };
    (0..OBJECTS).map(object).collect()
}

/// The first page of a list; later ones follow its token.
pub(super) fn first_page(kind: &Kind, story: &str, random: &mut StdRng) -> Call {
    let selectors =
        [String::new(), "&labelSelector=app%3Da".to_owned(), format!("&fieldSelector=metadata.name!%3D{story}-1")];
    let selector = selectors.choose(random).cloned().unwrap_or_default();
    let accept = ["application/json", TABLE, METADATA_LIST, METADATA].choose(random).copied().unwrap_or(TABLE);
    let limit = random.random_range(1..4);
    Call { accept, ..Call::new("page", "GET", format!("{}?limit={limit}{selector}", kind.path), None) }
}

/// The page after an answer, if it says that there is one.
pub(super) fn next_page(first: &Call, answer: &Value) -> Option<Call> {
    let token = answer["metadata"]["continue"].as_str().filter(|token| !token.is_empty())?;
    Some(Call { path: format!("{}&continue={token}", first.path), ..first.clone() })
}

/// A list of some of the objects, as it is now or was at the version of another answer.
pub(super) fn list(kind: &Kind, version: &str, random: &mut StdRng) -> Call {
    let options = [
        "labelSelector=story,app+notin+(a)".to_owned(),
        "labelSelector=number+in+(1,3),app".to_owned(),
        "fieldSelector=metadata.namespace%3Ddiff".to_owned(),
        format!("resourceVersion={version}&resourceVersionMatch=Exact"),
        format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
        format!("resourceVersion={version}&resourceVersionMatch=Exact&limit=2"),
        format!("resourceVersion={version}&limit=2"),
        "resourceVersion=0".to_owned(),
    ];
    let accept = ["application/json", TABLE, METADATA_LIST, METADATA].choose(random).copied().unwrap_or(TABLE);
    let query = options.choose(random).cloned().unwrap_or_default();
    Call { accept, ..Call::new("list-some", "GET", format!("{}?{query}", kind.path), None) }
}

/// The end of some of the objects.
pub(super) fn delete(kind: &Kind, random: &mut StdRng) -> Call {
    let selectors = [
        "labelSelector=story,app%3Da",
        "labelSelector=story,app+notin+(a)",
        "labelSelector=story,number+in+(1,2,4)",
        "labelSelector=story",
    ];
    let fields = ["", "&fieldSelector=metadata.name%3Dnone", "&limit=2", "&fieldSelector=spec.nope%3D1"];
    let (selector, field) = (selectors.choose(random).unwrap_or(&""), fields.choose(random).unwrap_or(&""));
    let mut body = json!({});
    if random.random_bool(0.5) {
        body["propagationPolicy"] = json!(["Foreground", "Background", "Orphan", "Sideways"].choose(random));
    }
    if random.random_bool(0.2) {
        body["preconditions"] = json!({"resourceVersion": "1"});
    }
    if random.random_bool(0.2) {
        body["dryRun"] = json!(["All"]);
    }
    Call::new("delete-some", "DELETE", format!("{}?{selector}{field}", kind.path), Some(body))
}
