//! Objects in Kubernetes' protobuf form, to and from JSON, driven by the table of structs.
//!
//! An encoded object starts with four magic bytes, then an envelope (`runtime.Unknown`) names its kind and holds its
//! bytes. What decoding gives is what Go's JSON encoder would write for the same bytes.

mod decode;
mod encode;
mod leaf;
mod wire;

use serde_json::Value;

use crate::builtin;
use crate::structs::{self, Form, Struct};
use wire::{Reader, Wire, Writer};

/// The content type of the encoding.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may contain one another.
const DEPTH_MAX: usize = 128;

/// Why bytes cannot be read as an object.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The magic bytes are missing.
    #[error("the body does not start with the magic bytes of Kubernetes' protobuf encoding")]
    NotKubernetes,
    /// The envelope names no kind, and none is implied by the request.
    #[error("the protobuf envelope names no apiVersion and kind")]
    NoKind,
    /// The kind has no protobuf form here.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\" in the protobuf encoding")]
    UnknownKind {
        /// The version in the envelope.
        api_version: String,
        /// The kind in the envelope.
        kind: String,
    },
    /// The bytes are no protobuf.
    #[error("malformed protobuf: {0}")]
    Malformed(&'static str),
    /// A field holds what it cannot hold.
    #[error("{path}: {reason}")]
    Field {
        /// The struct and the field.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A field that holds JSON holds something else.
    #[error("embedded JSON: {0}")]
    Json(#[source] serde_json::Error),
}

/// Why an object cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The object has no `apiVersion` and `kind`.
    #[error("the object has no apiVersion and kind")]
    NoKind,
    /// The kind has no protobuf form: that of custom resources has none.
    #[error("{kind} in version {api_version} has no protobuf form")]
    UnknownKind {
        /// The version of the object.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// A field holds what it cannot hold.
    #[error("{path}: {reason}")]
    Field {
        /// The struct and the field.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Whether `bytes` start as an encoded object does.
pub fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads an encoded object. Where the envelope names no kind, `implied` (version and kind) counts.
///
/// # Errors
/// The bytes are malformed, or their kind is not known.
pub fn decode(bytes: &[u8], implied: Option<(&str, &str)>) -> Result<Value, DecodeError> {
    decode_inside(bytes, implied, DEPTH_MAX)
}

/// Reads an encoded object that may nest `depth` messages.
fn decode_inside(bytes: &[u8], implied: Option<(&str, &str)>, depth: usize) -> Result<Value, DecodeError> {
    let body = bytes.strip_prefix(MAGIC).ok_or(DecodeError::NotKubernetes)?;
    let envelope = Envelope::read(body)?;
    let (api_version, kind) = match (envelope.api_version.as_str(), envelope.kind.as_str()) {
        ("", "") => implied.ok_or(DecodeError::NoKind)?,
        named => named,
    };
    if envelope.content_type == "application/json" {
        return serde_json::from_slice(envelope.raw).map_err(DecodeError::Json);
    }
    let known = object_struct(api_version, kind)
        .ok_or_else(|| DecodeError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() })?;
    let mut object = decode::message(known, envelope.raw, depth)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// Reads the bytes of the struct with the OpenAPI name `definition`, without an envelope.
///
/// # Errors
/// The bytes are malformed, or the name is not known.
pub fn decode_message(definition: &str, bytes: &[u8]) -> Result<Value, DecodeError> {
    let known = structs::find(definition)
        .ok_or_else(|| DecodeError::UnknownKind { api_version: String::new(), kind: definition.to_owned() })?;
    decode::message(known, bytes, DEPTH_MAX)
}

/// Writes an object of a built-in kind with its envelope.
///
/// # Errors
/// The kind has no protobuf form, or a field does not have its type.
pub fn encode(object: &Value) -> Result<Vec<u8>, EncodeError> {
    let (Some(api_version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
        return Err(EncodeError::NoKind);
    };
    let unknown = || EncodeError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let known = object_struct(api_version, kind).ok_or_else(unknown)?;
    let raw = encode::message(known, object)?;
    let mut type_meta = Writer::default();
    type_meta.bytes(1, api_version.as_bytes());
    type_meta.bytes(2, kind.as_bytes());
    let mut envelope = Writer::default();
    envelope.bytes(1, &type_meta.into_bytes());
    envelope.bytes(2, &raw);
    envelope.bytes(3, b"");
    envelope.bytes(4, b"");
    Ok([MAGIC, &envelope.into_bytes()].concat())
}

/// Writes an event of a watch as a frame of its stream: the length as four bytes, then the event, without an envelope.
/// `object` is an encoded object, with its envelope.
pub fn watch_frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut extension = Writer::default();
    extension.bytes(1, object);
    let mut event = Writer::default();
    event.bytes(1, event_type.as_bytes());
    event.bytes(2, &extension.into_bytes());
    let event = event.into_bytes();
    // Objects are limited far below what four bytes can count.
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &event].concat()
}

/// Reads what [`watch_frame`] wrote, after its length: the type and the encoded object.
///
/// # Errors
/// The bytes are malformed.
pub fn read_watch_event(frame: &[u8]) -> Result<(String, &[u8]), DecodeError> {
    let (mut event_type, mut object) = (String::new(), &[][..]);
    let mut reader = Reader::new(frame);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(name)) => event_type = text(name)?,
            (2, Wire::Bytes(extension)) => {
                let mut inner = Reader::new(extension);
                while let Some((number, wire)) = inner.next()? {
                    if let (1, Wire::Bytes(raw)) = (number, wire) {
                        object = raw;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((event_type, object))
}

/// The struct of a kind: one that carries `apiVersion` and `kind`, which parts of objects do not.
fn object_struct(api_version: &str, kind: &str) -> Option<&'static Struct> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let name = builtin().definition_name(group, version, kind)?;
    structs::find(&name).filter(|known| known.form == Form::Object)
}

#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
    content_type: String,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, DecodeError> {
        let mut envelope = Envelope::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(type_meta)) => envelope.read_type_meta(type_meta)?,
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                (3, Wire::Bytes([_, ..])) => return Err(DecodeError::Malformed("encoded content is not supported")),
                (4, Wire::Bytes(content_type)) => envelope.content_type = text(content_type)?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type_meta(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(api_version)) => self.api_version = text(api_version)?,
                (2, Wire::Bytes(kind)) => self.kind = text(kind)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| DecodeError::Malformed("a string is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let mut type_meta = Writer::default();
        type_meta.bytes(1, api_version.as_bytes());
        type_meta.bytes(2, kind.as_bytes());
        let mut envelope = Writer::default();
        envelope.bytes(1, &type_meta.into_bytes());
        envelope.bytes(2, raw);
        [MAGIC, &envelope.into_bytes()].concat()
    }

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        assert!(matches!(decode(b"{}", None), Err(DecodeError::NotKubernetes)));
        assert!(matches!(decode(&envelope("", "", b""), None), Err(DecodeError::NoKind)));
        // A time is a struct of the same package as DeleteOptions, but no object.
        let time = envelope("v1", "Time", &[8, 1]);
        assert!(matches!(decode(&time, None), Err(DecodeError::UnknownKind { .. })));
        let custom = envelope("example.com/v1", "Memcached", b"");
        assert!(matches!(decode(&custom, None), Err(DecodeError::UnknownKind { .. })));
        assert!(matches!(decode(&envelope("v1", "Pod", &[0xff]), None), Err(DecodeError::Malformed(_))));
    }

    #[test]
    fn metrics_have_a_form() {
        let object = serde_json::json!({
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "metadata": {}, "items": [{
                "metadata": {"name": "p", "namespace": "n", "creationTimestamp": "2030-01-01T00:00:00Z"},
                "timestamp": "2030-01-01T00:00:00Z", "window": "15.002s",
                "containers": [{"name": "c", "usage": {"cpu": "1500u", "memory": "3Mi"}}],
            }],
        });
        assert_eq!(decode(&encode(&object).unwrap(), None).unwrap(), object);
    }

    #[test]
    fn metadata_alone_and_answers_have_a_form() {
        for (api_version, kind) in [
            ("v1", "Status"),
            ("meta.k8s.io/v1", "PartialObjectMetadata"),
            ("meta.k8s.io/v1beta1", "PartialObjectMetadata"),
            ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        ] {
            let mut object =
                serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"resourceVersion": "7"}});
            if kind.ends_with("List") {
                object["items"] = serde_json::json!([{"metadata": {"name": "a"}}]);
            }
            let read = decode(&encode(&object).unwrap(), None).unwrap();
            assert_eq!(read["metadata"]["resourceVersion"], "7", "{kind}");
            assert_eq!(read["items"][0]["metadata"]["name"], object["items"][0]["metadata"]["name"]);
        }
    }

    #[test]
    fn events_are_framed() {
        let frame = watch_frame("ADDED", b"k8s\0object");
        assert_eq!(frame[..4], u32::try_from(frame.len() - 4).unwrap().to_be_bytes());
        assert_eq!(read_watch_event(&frame[4..]).unwrap(), ("ADDED".to_owned(), &b"k8s\0object"[..]));
    }

    #[test]
    fn the_request_implies_a_kind_that_is_not_named() {
        let object = decode(&envelope("", "", b""), Some(("v1", "ConfigMap"))).unwrap();
        assert_eq!(object["kind"], "ConfigMap");
    }

    #[test]
    fn messages_may_not_nest_without_end() {
        let definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        // Field 28 is `not`, which holds a schema again.
        let nested: Vec<u8> = (0..2 * DEPTH_MAX).fold(Vec::new(), |inner, _| {
            let mut writer = Writer::default();
            writer.bytes(28, &inner);
            writer.into_bytes()
        });
        assert!(matches!(decode_message(definition, &nested), Err(DecodeError::Malformed(_))));
    }

    #[test]
    fn objects_may_not_nest_without_end() {
        // What a ControllerRevision keeps may be an encoded object, such as a ControllerRevision.
        let nested: Vec<u8> = (0..2 * DEPTH_MAX).fold(b"{}".to_vec(), |inner, _| {
            let (mut data, mut revision) = (Writer::default(), Writer::default());
            data.bytes(1, &inner);
            revision.bytes(2, &data.into_bytes());
            envelope("apps/v1", "ControllerRevision", &revision.into_bytes())
        });
        assert!(matches!(decode(&nested, None), Err(DecodeError::Malformed(_))));
    }
}
