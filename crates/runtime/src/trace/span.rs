//! Spans: what they are called, when they were, and what is told of them.

use jiff::Timestamp;

use crate::journal::{Run, Turn};
use crate::tap::Call;

/// Which trace, and which span of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    /// Whether it is sent; others are told so.
    pub(crate) sampled: bool,
}

impl Context {
    /// A new trace.
    pub(crate) fn root(sampled: bool) -> Self {
        // Zero means none.
        Self { trace: rand::random::<u128>().max(1), span: rand::random::<u64>().max(1), sampled }
    }

    /// Another span of the same trace.
    pub(crate) fn child(self) -> Self {
        Self { span: rand::random::<u64>().max(1), ..self }
    }

    /// The header by which the callee goes on with the trace.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// A fact about a span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}

/// A named fact.
pub(crate) type Attribute = (&'static str, Value);

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) context: Context,
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    /// Whether it is a call to somebody else.
    pub(crate) is_call: bool,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) attributes: Vec<Attribute>,
    /// What failed, in a word.
    pub(crate) error: Option<String>,
}

/// The span of a run.
pub(crate) fn of_run(
    run: &Run,
    context: Context,
    (start, end): (Timestamp, Timestamp),
    mut attributes: Vec<Attribute>,
) -> Span {
    let outcome = serde_json::to_value(run.turn).ok().and_then(|word| word.as_str().map(str::to_owned));
    let triggers: Vec<String> = run.triggers.iter().map(ToString::to_string).collect();
    attributes.extend([
        ("windlass.controller", Value::Text(run.controller.clone())),
        ("windlass.reconcile_id", Value::Text(run.reconcile_id.clone())),
        ("windlass.trigger", Value::Text(triggers.join("; "))),
        ("windlass.outcome", Value::Text(outcome.unwrap_or_default())),
        ("windlass.reason", Value::Text(run.reason.clone())),
        ("windlass.queue.wait_ms", Value::Number(i64::try_from(run.waited_ms).unwrap_or(i64::MAX))),
        ("windlass.failures", Value::Number(i64::from(run.failures))),
    ]);
    let is_error = matches!(run.turn, Turn::Failed | Turn::Crashed | Turn::Invalid | Turn::Refused);
    Span {
        context,
        parent: None,
        name: format!("reconcile {}", run.controller),
        is_call: false,
        start,
        end,
        attributes,
        // The message stays here: it may have the words of an object in it.
        error: is_error.then(|| run.reason.clone()),
    }
}

/// The span of a call.
pub(crate) fn of_call(
    call: &Call,
    code: Option<u16>,
    (context, parent): (Context, Context),
    (start, end): (Timestamp, Timestamp),
) -> Span {
    let resource = match call.subresource.as_str() {
        "" => call.resource.clone(),
        subresource => format!("{}/{subresource}", call.resource),
    };
    let text = |text: &Option<String>| Value::Text(text.clone().unwrap_or_default());
    let mut attributes = vec![
        ("k8s.api.verb", Value::Text(call.verb.to_owned())),
        ("k8s.api.group", Value::Text(call.group.clone())),
        ("k8s.api.resource", Value::Text(resource.clone())),
        ("k8s.namespace.name", text(&call.namespace)),
        ("k8s.object.name", text(&call.name)),
    ];
    attributes.retain(|(_, value)| *value != Value::Text(String::new()));
    if let Some(code) = code {
        attributes.push(("http.response.status_code", Value::Number(i64::from(code))));
    }
    let error = match code {
        None => Some("no answer".to_owned()),
        Some(code) if code >= 400 => Some(code.to_string()),
        Some(_) => None,
    };
    Span {
        context,
        parent: Some(parent.span),
        name: format!("{} {resource}", call.verb),
        is_call: true,
        start,
        end,
        attributes,
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_standard() {
        let context = Context { trace: 0xabc, span: 0x12, sampled: true };
        assert_eq!(context.traceparent(), "00-00000000000000000000000000000abc-0000000000000012-01");
        let child = Context { sampled: false, ..context }.child();
        assert_eq!((child.trace, child.span != context.span), (context.trace, true));
        assert!(child.traceparent().ends_with("-00"));
    }
}
