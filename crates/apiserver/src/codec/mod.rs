//! Bodies in and out: content negotiation, JSON, YAML, protobuf.

mod accept;
mod answer;
mod body;
mod document;
mod input;
mod prepared;

pub(crate) use accept::{ANSWER_TYPES, Accept, Form, Transform};
pub(crate) use answer::{json_bytes, respond, respond_text};
pub(crate) use body::read;
pub use body::{Body, BoxError, full};
pub(crate) use document::{Document, parse_json, parse_yaml};
pub(crate) use input::{MediaType, document};
pub(crate) use prepared::Prepared;
