//! The `authorizer` of expressions: what somebody may do, asked while admission runs.

use std::sync::Arc;

use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as CelValue, objects::Opaque};

use super::{
    engine,
    library::{REQUEST_RESOURCE, argument},
};
use crate::auth::{Attributes, Auth, Target, User, service_account_groups, service_account_name};

/// Who is asked, about whom, and what the request itself is about.
#[derive(Clone, Debug)]
pub(crate) struct Authority {
    /// Who knows.
    pub(crate) auth: Arc<Auth>,
    /// Who sent the request.
    pub(crate) user: User,
    /// What the request is about.
    pub(crate) resource: ResourceQuestion,
}

/// The resource that a question is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceQuestion {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A question on its way, as expressions build it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    user: User,
    subject: Subject,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Nothing,
    Path(String),
    Group(String),
    Resource(ResourceQuestion),
    Answer(bool),
}

impl Opaque for Question {
    fn runtime_type_name(&self) -> &str {
        match self.subject {
            Subject::Nothing => "kubernetes.authorization.Authorizer",
            Subject::Path(_) => "kubernetes.authorization.PathCheck",
            Subject::Group(_) => "kubernetes.authorization.GroupCheck",
            Subject::Resource(_) => "kubernetes.authorization.ResourceCheck",
            Subject::Answer(_) => "kubernetes.authorization.Decision",
        }
    }
}

/// The value of the variable `authorizer`.
pub(super) fn value(authority: &Authority) -> CelValue {
    opaque(Question { user: authority.user.clone(), subject: Subject::Nothing })
}

fn opaque(question: Question) -> CelValue {
    CelValue::Opaque(Arc::new(question))
}

type Call<'a, 'b> = FunctionContext<'a, 'b>;
type Outcome = Result<CelValue, ExecutionError>;

/// The functions by which questions are built and answered.
const FUNCTIONS: [&str; 14] = [
    "path",
    "group",
    "serviceAccount",
    "resource",
    "subresource",
    "namespace",
    "name",
    "check",
    "allowed",
    "errored",
    "error",
    "reason",
    "fieldSelector",
    "labelSelector",
];

/// Adds the functions.
pub(super) fn register(library: &mut Context<'static>) {
    library.add_function(REQUEST_RESOURCE, |_: &Call<'_, '_>| {
        let authority = engine::authority().ok_or(ExecutionError::NoSuchOverload)?;
        Ok(opaque(Question { user: authority.user, subject: Subject::Resource(authority.resource) }))
    });
    for name in FUNCTIONS {
        library.add_function(name, move |call: &Call<'_, '_>| step(call, name));
    }
}

fn step(call: &Call<'_, '_>, function: &str) -> Outcome {
    let Some(CelValue::Opaque(this)) = &call.this else { return Err(ExecutionError::NoSuchOverload) };
    let question = this.downcast_ref::<Question>().ok_or(ExecutionError::NoSuchOverload)?.clone();
    let text = |index: usize| match argument(call, index)? {
        CelValue::String(text) => Ok(text.to_string()),
        _ => Err(ExecutionError::NoSuchOverload),
    };
    let Question { mut user, subject } = question;
    let subject = match (function, subject) {
        ("path", Subject::Nothing) => Subject::Path(text(0)?),
        ("group", Subject::Nothing) => Subject::Group(text(0)?),
        ("serviceAccount", Subject::Nothing) => {
            let (namespace, name) = (text(0)?, text(1)?);
            user = User::new(service_account_name(&namespace, &name), service_account_groups(&namespace));
            Subject::Nothing
        }
        ("resource", Subject::Group(group)) => {
            Subject::Resource(ResourceQuestion { group, resource: text(0)?, ..ResourceQuestion::default() })
        }
        ("subresource", Subject::Resource(question)) => {
            Subject::Resource(ResourceQuestion { subresource: text(0)?, ..question })
        }
        ("namespace", Subject::Resource(question)) => {
            Subject::Resource(ResourceQuestion { namespace: text(0)?, ..question })
        }
        ("name", Subject::Resource(question)) => Subject::Resource(ResourceQuestion { name: text(0)?, ..question }),
        // RBAC does not look at selectors.
        ("fieldSelector" | "labelSelector", Subject::Resource(question)) => Subject::Resource(question),
        ("check", subject @ (Subject::Path(_) | Subject::Resource(_))) => {
            Subject::Answer(is_allowed(&user, &subject, &text(0)?)?)
        }
        ("allowed", Subject::Answer(allowed)) => return Ok(CelValue::Bool(allowed)),
        ("errored", Subject::Answer(_)) => return Ok(CelValue::Bool(false)),
        ("error" | "reason", Subject::Answer(_)) => return Ok(CelValue::String(Arc::default())),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(opaque(Question { user, subject }))
}

fn is_allowed(user: &User, subject: &Subject, verb: &str) -> Result<bool, ExecutionError> {
    let authority = engine::authority().ok_or(ExecutionError::NoSuchOverload)?;
    let target = match subject {
        Subject::Path(path) => Target::Path(path),
        Subject::Resource(ResourceQuestion { group, resource, subresource, namespace, name }) => {
            Target::Resource { group, resource, subresource, namespace, name }
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(authority.auth.authorizer().allows(user, &Attributes { verb, target }))
}
