//! Spans in the JSON form of OTLP.

use jiff::Timestamp;
use serde::Serialize;

use super::span::{Attribute, Span, Value};

/// Who says so, to the reader of a trace.
const SCOPE: &str = "windlass-runtime";
/// Codes of the standard.
const KIND_INTERNAL: u8 = 1;
const KIND_CLIENT: u8 = 3;
const STATUS_ERROR: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Resource<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: Vec<KeyValue<'a>>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<Sent<'a>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct KeyValue<'a> {
    key: &'a str,
    value: AnyValue<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum AnyValue<'a> {
    StringValue(&'a str),
    /// Numbers of 64 bits are texts.
    IntValue(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    flags: u32,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<KeyValue<'a>>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Status<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// The body of a request with these spans.
pub(super) fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let attributes =
        resource.iter().map(|(key, value)| KeyValue { key, value: AnyValue::StringValue(value) }).collect();
    let scope = Scope { name: SCOPE, version: env!("CARGO_PKG_VERSION") };
    let scope_spans = [ScopeSpans { scope, spans: spans.iter().map(sent).collect() }];
    let request = Request { resource_spans: [ResourceSpans { resource: Resource { attributes }, scope_spans }] };
    serde_json::to_vec(&request).expect("texts and numbers can be written as JSON")
}

fn sent(span: &Span) -> Sent<'_> {
    Sent {
        trace_id: format!("{:032x}", span.context.trace),
        span_id: format!("{:016x}", span.context.span),
        parent_span_id: span.parent.map(|parent| format!("{parent:016x}")),
        flags: u32::from(span.context.sampled),
        name: &span.name,
        kind: if span.is_call { KIND_CLIENT } else { KIND_INTERNAL },
        start_time_unix_nano: nanoseconds(span.start),
        end_time_unix_nano: nanoseconds(span.end),
        attributes: span.attributes.iter().map(attribute).collect(),
        status: Status { code: span.error.as_ref().map(|_| STATUS_ERROR), message: span.error.as_deref() },
    }
}

fn attribute((key, value): &Attribute) -> KeyValue<'_> {
    let value = match value {
        Value::Text(text) => AnyValue::StringValue(text),
        Value::Number(number) => AnyValue::IntValue(number.to_string()),
    };
    KeyValue { key, value }
}

fn nanoseconds(time: Timestamp) -> String {
    time.as_nanosecond().max(0).to_string()
}
