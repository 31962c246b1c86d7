//! One request on one kind, with everything that the verbs need to know of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::{options::WriteOptions, render, versions};
use crate::{
    Api, ApiError, Subject,
    admission::{ObjectKind, Operation, Review},
    audit,
    auth::{Attributes, Target, User},
    codec::{Accept, Body, respond},
    object::{Object, timestamp},
    query::Query,
    registry::Served,
    request::{ResourceRequest, Verb},
};

/// One request on one kind.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) api: Api,
    pub(crate) kind: Served,
    pub(crate) user: User,
    pub(crate) request: ResourceRequest,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) accept: Accept,
    pub(crate) options: WriteOptions,
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Scope {
    /// The same request, made of the object `name` of another kind.
    pub(crate) fn to_object(&self, kind: Served, name: &str) -> Scope {
        let request = ResourceRequest {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            name: name.to_owned(),
            ..self.request.clone()
        };
        Scope {
            api: self.api.clone(),
            kind,
            user: self.user.clone(),
            request,
            query: self.query.clone(),
            headers: self.headers.clone(),
            accept: self.accept.clone(),
            options: self.options.clone(),
            warnings: Mutex::default(),
        }
    }

    /// The resource as errors name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.kind.group, resource: &self.kind.plural }
    }

    /// The kind as errors about invalid objects name it.
    pub(crate) fn kind_subject(&self) -> Subject<'_> {
        Subject { group: &self.kind.group, resource: &self.kind.kind().kind }
    }

    /// Refuses what the user may not do with the object, beyond what the request itself is.
    pub(crate) fn authorize(&self, verb: &str) -> Result<(), ApiError> {
        let ResourceRequest { group, resource, subresource, namespace, name, .. } = &self.request;
        let target = Target::Resource { group, resource, subresource, namespace, name };
        self.api.auth().authorize(&self.user, &Attributes { verb, target })
    }

    /// The present time as objects carry it.
    pub(crate) fn now(&self) -> String {
        timestamp(self.api.clock().now())
    }

    /// Adds a sentence for the `Warning` headers.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.into());
    }

    /// The namespace of the objects: that of the path, or none for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        if self.kind.namespaced { &self.request.namespace } else { "" }
    }

    /// A 422 for the object, unless there is nothing wrong.
    pub(crate) fn check(&self, object: &Value, errors: Vec<windlass_schema::FieldError>) -> Result<(), ApiError> {
        if errors.is_empty() {
            return Ok(());
        }
        // Both groups of events are checked as one kind, and custom objects are called what they call themselves.
        let own_kind = object.get("kind").and_then(Value::as_str).filter(|_| !self.kind.is_builtin());
        let resource = own_kind.unwrap_or(&self.kind.kind().kind);
        let subject = Subject { group: versions::storage_group(&self.kind), resource };
        Err(ApiError::invalid_fields(subject, object.name(), errors))
    }

    /// What admission gets to see.
    pub(crate) fn review<'a>(&'a self, operation: Operation, name: &'a str, object: Value, old: Value) -> Review<'a> {
        let own = self.kind.group.is_empty() && self.kind.plural == "namespaces";
        Review {
            operation,
            user: &self.user,
            group: &self.kind.group,
            version: &self.kind.version,
            resource: &self.kind.plural,
            subresource: &self.request.subresource,
            kind: self.object_kind(),
            namespace: if own { name } else { &self.request.namespace },
            name,
            given_name: name,
            object,
            old,
            options: self.described_options(operation),
            dry_run: self.options.dry_run,
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }

    /// Lets admission complete the object. What it has to say is kept, whether it refuses or not.
    pub(crate) async fn mutate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        let outcome = self.api.admission().mutate(review).await;
        self.keep(review);
        outcome
    }

    /// Lets admission refuse the object. What it has to say is kept, whether it refuses or not.
    pub(crate) async fn validate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        let outcome = self.api.admission().validate(review).await;
        self.keep(review);
        outcome
    }

    /// Keeps what admission has to say: to the client, and for the audit log.
    fn keep(&self, review: &mut Review<'_>) {
        std::mem::take(&mut review.warnings).into_iter().for_each(|warning| self.warn(warning));
        for (key, value) in std::mem::take(&mut review.annotations) {
            audit::annotate(&key, &value);
        }
    }

    /// Lets admission judge something that is done with an object and not stored itself; gives what it made of it.
    pub(crate) async fn admit(&self, operation: Operation, object: Value) -> Result<Value, ApiError> {
        let mut review = self.review(operation, &self.request.name, object, Value::Null);
        self.mutate(&mut review).await?;
        self.validate(&mut review).await?;
        Ok(review.object)
    }

    /// The kind of what is written: that of the subresource, if the request is about one.
    fn object_kind(&self) -> ObjectKind {
        let part = self.kind.subresource(&self.request.subresource).filter(|part| !part.kind.is_empty());
        match part {
            Some(part) => {
                ObjectKind { group: part.group.clone(), version: part.version.clone(), kind: part.kind.clone() }
            }
            None => ObjectKind {
                group: self.kind.group.clone(),
                version: self.kind.version.clone(),
                kind: self.kind.kind().kind.clone(),
            },
        }
    }

    /// The options of the request as the object that webhooks know them by.
    fn described_options(&self, operation: Operation) -> Value {
        let kind = match (operation, self.request.verb) {
            (Operation::Connect, _) => return Value::Null,
            (Operation::Delete, _) => "DeleteOptions",
            (_, Verb::Patch) => "PatchOptions",
            (Operation::Create, _) => "CreateOptions",
            (Operation::Update, _) => "UpdateOptions",
        };
        self.options.described(kind)
    }

    /// The answer that carries one object, in the form that the client wants.
    pub(crate) fn answer(&self, status: StatusCode, object: &Value) -> Result<Response<Body>, ApiError> {
        let rendered = render::object(self, object)?;
        Ok(respond(status, &rendered, &self.accept))
    }
}
