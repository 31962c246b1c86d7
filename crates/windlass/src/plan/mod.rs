//! What an operator would do: its real code, on the real cluster, with all writes caught.

mod answer;
pub(crate) mod command;
mod difference;
mod local;
mod overlay;
mod place;
mod selection;
mod text;

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::Scope;
use kube::{Api, Client, discovery};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Manager, ManagerConfig, Namespaces, Purpose};

use self::difference::{Field, fields, title};
use self::overlay::Overlay;
use self::place::{Entry, meta};
use crate::app::Program;

/// How long an operator may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it rests.
const LOOK: Duration = Duration::from_millis(20);
/// At rest is what was found at rest this many times in a row: a change may be on its way from a cache to a queue.
const LOOKS: usize = 5;
/// How deep ownership is followed when an owner goes.
const GENERATIONS_MAX: usize = 8;

/// What a person would do to the cluster.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Objects to apply.
    pub apply: Vec<Value>,
    /// Objects to delete.
    pub delete: Vec<Value>,
    /// In whose name.
    pub field_manager: String,
    /// Where objects are that name no namespace; none is the client's own.
    pub namespace: Option<String>,
}

/// What would happen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    /// The objects that would be created, changed and deleted.
    pub changes: Vec<Change>,
    /// Calls that change something other than an object.
    pub calls: Vec<String>,
    /// What resources would then wait for: parts whose turn comes when others are ready.
    pub waits: Vec<String>,
    /// The events that the operator would record.
    pub said: Vec<String>,
    /// The writes that the API would refuse.
    pub refused: Vec<String>,
    /// Whether the operator came to rest.
    pub settled: bool,
}

/// What would happen to an object.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Which kind of change.
    pub what: What,
    /// Kind, namespace and name.
    pub object: String,
    /// Whether it is what the person asks for, rather than what the operator does.
    pub asked: bool,
    /// Why, where it is not the operator's own doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The fields that would be different, but for the status.
    fields: Vec<Field>,
    /// The fields of the status that would be different.
    status: Vec<Field>,
    /// The object as it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// The object is not there.
    Create,
    /// The object is otherwise.
    Change,
    /// The object would no longer be there.
    Delete,
}

impl What {
    fn sign(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Delete => '-',
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// What was given is no object.
    #[error("{0}: an object has apiVersion, kind and metadata.name")]
    NoObject(String),
    /// The cluster does not know the kind.
    #[error("the cluster has no {kind} of {api_version}: install the operator's definitions first ({operator} crd)")]
    NoKind {
        /// The kind.
        kind: String,
        /// Its version.
        api_version: String,
        /// The operator's name.
        operator: String,
    },
    /// The API refuses the wish itself.
    #[error("the API would refuse {object}: {why}")]
    Refused {
        /// Which object.
        object: String,
        /// The API's words.
        why: String,
    },
    /// The operator cannot work.
    #[error("the operator did not begin to work: {0}")]
    NotReady(String),
    /// The way to the API.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Finds out what the operator would do if `wish` came true, or with the cluster as it is.
///
/// # Errors
/// The API refuses the wish, or the operator cannot even read what it needs.
pub async fn plan(
    program: &dyn Program,
    client: Client,
    namespaces: Namespaces,
    wish: &Wish,
) -> Result<Plan, PlanError> {
    let overlay = Overlay::new(client.clone());
    // Planned writes are not the flapping of a field, and there is nobody to be told of it.
    let config =
        ManagerConfig { notice_loops: false, purpose: Purpose::Rehearsal, ..ManagerConfig::new(program.name()) };
    let mut manager = Manager::new(client, config);
    manager.tap().intercept(Some(overlay.intercept()));
    program.install(&mut manager, namespaces);
    let (tapped, health, activity) = (manager.handle().client, manager.health().clone(), manager.activity());
    overlay.asking(true);
    make_true(program, &tapped, wish).await?;
    overlay.asking(false);

    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    let settled = settle(|| activity.is_quiet()).await;
    stop.cancel();
    let _ = running.await;
    if !activity.has_begun() {
        let troubles = health.report().into_iter().filter_map(|(name, trouble)| Some(format!("{name}: {}", trouble?)));
        return Err(PlanError::NotReady(troubles.collect::<Vec<_>>().join("; ")));
    }
    let mut changes = changes(&overlay);
    collect_garbage(&tapped, &overlay, &mut changes).await?;
    let mut state = overlay.state();
    let waits = state.entries.values().filter_map(|entry| wait(entry.now.as_ref()?)).collect();
    let said =
        state.said.iter().map(|event| format!("{}: {}", text(event, "reason"), text(event, "message"))).collect();
    let (calls, refused) = (std::mem::take(&mut state.calls), std::mem::take(&mut state.refused));
    Ok(Plan { changes, calls, waits, said, refused, settled })
}

/// Does in the overlay what the person wants.
async fn make_true(program: &dyn Program, client: &Client, wish: &Wish) -> Result<(), PlanError> {
    for object in &wish.apply {
        let (api, name) = find(program, client, wish, object).await?;
        let params = PatchParams::apply(&wish.field_manager).force();
        let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
        applied.map_err(|error| refusal(object, error))?;
    }
    for object in &wish.delete {
        let (api, name) = find(program, client, wish, object).await?;
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        deleted.map_err(|error| refusal(object, error))?;
    }
    Ok(())
}

/// The way to an object, and its name.
async fn find(
    program: &dyn Program,
    client: &Client,
    wish: &Wish,
    object: &Value,
) -> Result<(Api<DynamicObject>, String), PlanError> {
    let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    let types = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let (Ok(kind), Some(name)) = (GroupVersionKind::try_from(&types), meta(object, "name")) else {
        return Err(PlanError::NoObject(object.to_string()));
    };
    let (resource, capabilities) = match discovery::pinned_kind(client, &kind).await {
        Ok(found) => found,
        Err(kube::Error::Api(_) | kube::Error::Discovery(_)) => {
            let (kind, operator) = (kind.kind, program.name().to_owned());
            return Err(PlanError::NoKind { kind, api_version: types.api_version, operator });
        }
        Err(error) => return Err(error.into()),
    };
    let default = wish.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let namespace = meta(object, "namespace").unwrap_or(default);
    let api = match capabilities.scope {
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
        Scope::Cluster => Api::all_with(client.clone(), &resource),
    };
    Ok((api, name.to_owned()))
}

fn refusal(object: &Value, error: kube::Error) -> PlanError {
    match error {
        kube::Error::Api(status) => PlanError::Refused { object: title(object), why: status.message },
        error => error.into(),
    }
}

/// Waits until the operator rests; tells whether it did.
async fn settle(is_quiet: impl Fn() -> bool) -> bool {
    let wait = async {
        let mut looks = 0;
        while looks < LOOKS {
            tokio::time::sleep(LOOK).await;
            looks = if is_quiet() { looks + 1 } else { 0 };
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.is_ok()
}

fn changes(overlay: &Overlay) -> Vec<Change> {
    overlay.state().entries.values().filter_map(change).collect()
}

/// What an entry is to the cluster; none where all is as it was.
fn change(entry: &Entry) -> Option<Change> {
    let Entry { before, now, asked } = entry;
    let what = match (before, now) {
        (None, Some(_)) => What::Create,
        (Some(_), Some(_)) => What::Change,
        (Some(_), None) => What::Delete,
        (None, None) => return None,
    };
    let fields = if what == What::Delete { Vec::new() } else { fields(before.as_ref(), now.as_ref()) };
    let because = before.as_ref().zip(now.as_ref()).and_then(|(before, now)| title_change(before, now));
    if what == What::Change && fields.is_empty() && because.is_none() {
        return None;
    }
    let (status, fields) = fields.into_iter().partition(|field| field.path.starts_with("status"));
    let object = title(now.as_ref().or(before.as_ref())?);
    Some(Change { what, object, asked: *asked, because, fields, status, after: now.clone() })
}

/// What an object that stays would lose or get an owner for.
fn title_change(before: &Value, now: &Value) -> Option<String> {
    let has_owner = |object: &Value| object["metadata"]["ownerReferences"].as_array().is_some_and(|it| !it.is_empty());
    let words = match (has_owner(before), has_owner(now)) {
        (true, false) => "it stays, and belongs to nobody",
        (false, true) => "it is taken over",
        _ => return None,
    };
    Some(words.to_owned())
}

/// What an object would wait for, by its own account.
fn wait(object: &Value) -> Option<String> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    let ready = conditions.find(|it| it["type"] == "Ready" && it["status"] == "False" && it["reason"] == "Waiting")?;
    Some(format!("{}: {}", title(object), text(ready, "message")))
}

/// Adds what the garbage collector would remove, among the kinds that the operator looks at.
async fn collect_garbage(client: &Client, overlay: &Overlay, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    let mut gone: Vec<(String, String)> = {
        let state = overlay.state();
        let removed =
            state.entries.values().filter(|entry| entry.now.is_none()).filter_map(|entry| entry.before.as_ref());
        removed.filter_map(|object| Some((meta(object, "uid")?.to_owned(), title(object)))).collect()
    };
    let listed = overlay.state().listed.clone();
    for _ in 0..GENERATIONS_MAX {
        let known = gone.len();
        for path in listed.iter().filter(|_| known > 0) {
            let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            let list: Value = client.request(request).await?;
            let kind = text(&list, "kind").trim_end_matches("List").to_owned();
            for item in list["items"].as_array().into_iter().flatten() {
                let mut item = item.clone();
                item["kind"] = kind.as_str().into();
                let Some(owner) = lost_owner(&item, &gone).cloned() else { continue };
                let Some(uid) = meta(&item, "uid").filter(|uid| !gone.iter().any(|(gone, _)| gone == uid)) else {
                    continue;
                };
                let (object, because) = (title(&item), Some(format!("its owner {owner} goes")));
                gone.push((uid.to_owned(), object.clone()));
                let (fields, status) = (Vec::new(), Vec::new());
                let what = What::Delete;
                changes.push(Change { what, object, asked: false, because, fields, status, after: None });
            }
        }
        if gone.len() == known {
            break;
        }
    }
    Ok(())
}

/// The owner of an object whose owners are all gone.
fn lost_owner<'a>(item: &Value, gone: &'a [(String, String)]) -> Option<&'a String> {
    let owners = item["metadata"]["ownerReferences"].as_array().filter(|owners| !owners.is_empty())?;
    let titles: Option<Vec<_>> = owners
        .iter()
        .map(|owner| gone.iter().find(|(uid, _)| owner["uid"] == uid.as_str()).map(|(_, title)| title))
        .collect();
    titles?.first().copied()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
