//! A function of the author's as a webhook.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, Operation, Question, Request, Verdict, Window};
use crate::difference::{between, impose, without_nulls};
use crate::world::World;

/// How long the API server waits for an answer, unless it is said.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a webhook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Fills in what is not said.
    Default,
    /// Refuses what must not be.
    Validate,
}

/// What happens while nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Requests fail.
    Fail,
    /// Requests pass.
    Ignore,
}

type Decide = Arc<dyn Fn(&Question) -> Result<Answer, DecideError> + Send + Sync>;

/// Why a function has no answer.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The object is not one of the kind.
    #[error("the object cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// What the function asked for cannot be seen now, and may be later.
    #[error("the operator cannot judge yet: {0}")]
    Blind(String),
}

/// A function that is asked before objects of a kind are stored.
#[derive(Clone)]
pub struct Hook {
    /// What it is for.
    pub task: Task,
    /// The kind.
    pub resource: ApiResource,
    /// Whether objects of the kind live in namespaces.
    pub is_namespaced: bool,
    /// When it is asked.
    pub operations: Vec<Operation>,
    /// What happens while nobody answers.
    pub failure_policy: FailurePolicy,
    /// How long the API server waits for an answer; 1 to 30 seconds.
    pub timeout: Duration,
    /// Names and CEL expressions: it is asked only if all hold.
    pub match_conditions: Vec<(String, String)>,
    decide: Decide,
}

/// What a kind needs so that functions can be asked about its objects.
pub trait Admitted:
    Resource<DynamicType = (), Scope: 'static> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Admitted for K where
    K: Resource<DynamicType = (), Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

impl Hook {
    /// Fills in what is not said of new and changed objects.
    pub fn default<K: Admitted>(fill: impl Fn(&mut K, &Request<K>) + Send + Sync + 'static) -> Self {
        let decide = move |question: &Question| {
            let mut answer = Answer { uid: question.uid.clone(), allowed: true, ..Answer::default() };
            // What cannot be read is for the validation of the API server to refuse, which comes after this.
            let Ok(before) = serde_json::from_value::<K>(question.object.clone()) else { return Ok(answer) };
            let mut after = before.clone();
            fill(&mut after, &request(question)?);
            answer.patch = patch(&question.object, &before, &after)?;
            answer.patch_type = answer.patch.as_ref().map(|_| "JSONPatch".to_owned());
            Ok(answer)
        };
        Self::new::<K>(Task::Default, vec![Operation::Create, Operation::Update], Arc::new(decide))
    }

    /// Refuses new and changed objects.
    pub fn validate<K: Admitted>(judge: impl Fn(&K, &Request<K>) -> Verdict + Send + Sync + 'static) -> Self {
        let decide = move |question: &Question| {
            let object: K = serde_json::from_value(question.object.clone())?;
            Ok(answer(question, &judge(&object, &request(question)?)))
        };
        Self::new::<K>(Task::Validate, vec![Operation::Create, Operation::Update], Arc::new(decide))
    }

    /// Refuses new and changed objects, also by what there is.
    pub fn validate_in<K: Admitted>(
        window: Window,
        judge: impl Fn(&K, &Request<K>, &World) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let decide = move |question: &Question| {
            let object: K = serde_json::from_value(question.object.clone())?;
            let world = window.look().ok_or_else(|| DecideError::Blind("it is just starting".to_owned()))?;
            let verdict = judge(&object, &request(question)?, &world);
            match world.blind() {
                // An answer from what could not be seen is none.
                Some(why) => Err(DecideError::Blind(why.to_owned())),
                None => Ok(answer(question, &verdict)),
            }
        };
        Self::new::<K>(Task::Validate, vec![Operation::Create, Operation::Update], Arc::new(decide))
    }

    /// Refuses deletions; the function gets the object that is to go.
    pub fn validate_deletion<K: Admitted>(judge: impl Fn(&K, &Request<K>) -> Verdict + Send + Sync + 'static) -> Self {
        let decide = move |question: &Question| {
            let object: K = serde_json::from_value(question.old_object.clone())?;
            Ok(answer(question, &judge(&object, &request(question)?)))
        };
        Self::new::<K>(Task::Validate, vec![Operation::Delete], Arc::new(decide))
    }

    fn new<K: Admitted>(task: Task, operations: Vec<Operation>, decide: Decide) -> Self {
        let is_namespaced = std::any::TypeId::of::<K::Scope>() == std::any::TypeId::of::<NamespaceResourceScope>();
        Self {
            task,
            resource: ApiResource::erase::<K>(&()),
            is_namespaced,
            operations,
            failure_policy: FailurePolicy::Fail,
            timeout: TIMEOUT,
            match_conditions: Vec::new(),
            decide,
        }
    }

    /// Requests pass while nobody answers.
    #[must_use]
    pub fn ignoring_failure(mut self) -> Self {
        self.failure_policy = FailurePolicy::Ignore;
        self
    }

    /// How long the API server waits for an answer; 1 to 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Asked only if the CEL expression holds, which sees `object`, `oldObject` and `request`. All of several must hold.
    #[must_use]
    pub fn when(mut self, name: &str, expression: &str) -> Self {
        self.match_conditions.push((name.into(), expression.into()));
        self
    }

    /// The path of its URL: the task, the operations if they are not the usual ones, and the kind.
    pub fn path(&self) -> String {
        let task = match self.task {
            Task::Default => "mutate",
            Task::Validate if self.operations == [Operation::Delete] => "validate-delete",
            Task::Validate => "validate",
        };
        let ApiResource { group, version, kind, .. } = &self.resource;
        format!("/{task}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
    }

    /// Asks the function.
    ///
    /// # Errors
    /// When the object is not one of the kind, and when the function asked for what cannot be seen.
    pub fn decide(&self, question: &Question) -> Result<Answer, DecideError> {
        (self.decide)(question)
    }
}

fn request<K: Admitted>(question: &Question) -> Result<Request<K>, serde_json::Error> {
    Ok(Request {
        operation: question.operation,
        old: serde_json::from_value(question.old_object.clone())?,
        user: question.user_info.clone(),
        dry_run: question.dry_run.unwrap_or_default(),
        namespace: question.namespace.clone(),
        name: question.name.clone(),
    })
}

fn answer(question: &Question, verdict: &Verdict) -> Answer {
    Answer {
        uid: question.uid.clone(),
        allowed: verdict.is_allowed(),
        status: verdict.status(),
        warnings: verdict.warnings().to_vec(),
        ..Answer::default()
    }
}

/// The patch that does to `raw` what was done to the typed object. Fields that the type does not know stay.
fn patch<K: Serialize>(raw: &Value, before: &K, after: &K) -> Result<Option<String>, serde_json::Error> {
    let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
    let changes = between(&without_nulls(after), &without_nulls(before), &Value::Null);
    if changes.is_empty() {
        return Ok(None);
    }
    let mut wanted = raw.clone();
    impose(&mut wanted, &changes);
    let patch = serde_json::to_vec(&json_patch::diff(raw, &wanted))?;
    // The bytes of the API are base64 in JSON.
    Ok(serde_json::to_value(ByteString(patch))?.as_str().map(Into::into))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    fn question(object: Value, old: Value) -> Question {
        serde_json::from_value(json!({
            "uid": "1", "operation": "UPDATE", "userInfo": {"username": "alice", "groups": ["staff"]},
            "object": object, "oldObject": old, "dryRun": true,
        }))
        .unwrap()
    }

    #[test]
    fn what_the_type_does_not_know_stays() {
        let hook = Hook::default(|map: &mut ConfigMap, _| {
            map.labels_mut().insert("a".into(), "b".into());
            map.data = None;
        });
        let object = json!({"metadata": {"name": "x"}, "data": {"k": "v"}, "future": {"f": 1}});
        let answer = hook.decide(&question(object.clone(), Value::Null)).unwrap();
        let patch: ByteString = serde_json::from_value(answer.patch.unwrap().into()).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch.0).unwrap();
        let mut patched = object;
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_eq!(patched, json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "future": {"f": 1}}));

        let nothing = Hook::default(|_: &mut ConfigMap, _| ());
        assert_eq!(nothing.decide(&question(json!({"metadata": {}}), Value::Null)).unwrap().patch, None);
        let unreadable = question(json!({"metadata": {}, "data": 5}), Value::Null);
        assert!(hook.decide(&unreadable).unwrap().allowed, "the API server says what is wrong with it");
    }

    #[test]
    fn a_judge_sees_who_asks_and_what_was_there() {
        let judge = Hook::validate(|map: &ConfigMap, request: &Request<ConfigMap>| {
            let old = request.old.as_ref().and_then(|old| old.data.as_ref()).map_or(0, |data| data.len());
            let new = map.data.as_ref().map_or(0, |data| data.len());
            Verdict::allow()
                .deny_if(new < old && !request.is_by_member_of("admins"), format!("{} may not", request.user_name()))
                .warn_if(request.dry_run, "only a try")
        });
        let less = question(json!({"metadata": {}}), json!({"metadata": {}, "data": {"k": "v"}}));
        let answer = judge.decide(&less).unwrap();
        assert_eq!((answer.allowed, answer.status.unwrap()["message"].as_str()), (false, Some("alice may not")));
        assert_eq!(answer.warnings, ["only a try"]);
        assert!(judge.decide(&question(json!({"metadata": {}}), Value::Null)).unwrap().allowed);
        assert_eq!(judge.path(), "/validate--v1-configmap");
    }

    #[test]
    fn a_judge_of_what_there_is_answers_when_it_can_see() {
        let window = Window::default();
        let judge = Hook::validate_in(window.clone(), |map: &ConfigMap, _: &Request<ConfigMap>, world: &World| {
            let is_taken = world.get::<ConfigMap>(None, &map.name_any()).is_some();
            Verdict::allow().deny_if(is_taken, "there is one already")
        });
        let asked = question(json!({"metadata": {"name": "a"}}), Value::Null);
        assert!(matches!(judge.decide(&asked), Err(DecideError::Blind(_))), "nothing is known of the world");
        window.open(World::new);
        assert!(judge.decide(&asked).unwrap().allowed);
        let metadata = kube::core::ObjectMeta { name: Some("a".into()), ..Default::default() };
        let there = World::new().with(ConfigMap { metadata, ..ConfigMap::default() });
        window.open(move || there.clone());
        assert!(!judge.decide(&asked).unwrap().allowed);
    }
}
