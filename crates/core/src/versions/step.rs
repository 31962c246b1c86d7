//! One step between neighbours, with nothing lost.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::difference::{Difference, between, restore, without_nulls};
use crate::names;
use crate::resource::{CustomResource, definition};

/// More than this is not kept: all annotations of an object together may have 256 KiB.
const KEPT_BYTES_MAX: usize = 128 * 1024;

/// What a way between two versions does with an object.
pub(super) type Step = Arc<dyn Fn(Value) -> Result<Value, ConvertError> + Send + Sync>;

/// Why an object cannot be had in another version.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// There is no such version.
    #[error("there is no version {asked:?}; there are {known}")]
    Version {
        /// The version that was asked for.
        asked: String,
        /// Those that there are.
        known: String,
    },
    /// The object is not what it says it is.
    #[error("the object cannot be read as {version}: {why}")]
    Read {
        /// The version.
        version: &'static str,
        /// What is wrong.
        #[source]
        why: serde_json::Error,
    },
    /// What one version has no place for is too much.
    #[error("{bytes} bytes of {version} have no place in the other version, and at most {KEPT_BYTES_MAX} can be kept")]
    TooMuch {
        /// The version that has a place.
        version: &'static str,
        /// How much it is.
        bytes: usize,
    },
}

/// The object as its type writes it, without what is not there.
pub(super) fn normalize<K: CustomResource>(object: Value) -> Result<Value, serde_json::Error> {
    let object: K = serde_json::from_value(object)?;
    Ok(without_nulls(serde_json::to_value(&object)?))
}

/// The way by `forth`; `back` tells what would not come back, which is kept.
pub(super) fn new<A: CustomResource, B: CustomResource>(
    forth: Arc<impl Fn(A) -> B + Send + Sync + 'static>,
    back: Arc<impl Fn(B) -> A + Send + Sync + 'static>,
) -> Step {
    let schema = schema_of::<A>();
    Arc::new(move |object| {
        let metadata = object["metadata"].clone();
        let before: A = read(object)?;
        let before_value = write::<A>(&before)?;
        let mut after = write::<B>(&forth(before))?;
        let kept_of_b = kept(&metadata, B::facts().version);
        restore(&mut after, &kept_of_b);
        after["metadata"] = metadata.clone();
        let returned = write::<A>(&back(read(after.clone())?))?;
        let lost = between(&before_value, &returned, &schema);
        after["metadata"] = annotate(metadata, (A::facts().version, &lost), B::facts().version)?;
        Ok(after)
    })
}

fn read<K: CustomResource>(object: Value) -> Result<K, ConvertError> {
    serde_json::from_value(object).map_err(|why| ConvertError::Read { version: K::facts().version, why })
}

/// All of the object, with nothing in its metadata.
fn write<K: CustomResource>(object: &K) -> Result<Value, ConvertError> {
    let written =
        serde_json::to_value(object).map_err(|why| ConvertError::Read { version: K::facts().version, why })?;
    let mut written = without_nulls(written);
    if let Some(fields) = written.as_object_mut() {
        fields.insert("metadata".into(), json!({}));
    }
    Ok(written)
}

pub(super) fn schema_of<K: CustomResource>() -> Value {
    let schema = definition::<K>().spec.versions.pop().and_then(|version| version.schema);
    serde_json::to_value(schema.and_then(|schema| schema.open_api_v3_schema)).unwrap_or_default()
}

/// What was kept of a version; nothing if the annotation was spoilt.
fn kept(metadata: &Value, version: &str) -> Vec<Difference> {
    let text = metadata["annotations"][names::kept(version)].as_str().unwrap_or("[]");
    serde_json::from_str(text).unwrap_or_default()
}

/// The metadata with what was lost on the way from a version, and without what came back to the other.
fn annotate(mut metadata: Value, lost: (&'static str, &[Difference]), arrived: &str) -> Result<Value, ConvertError> {
    let (version, lost) = lost;
    let mut annotations = match metadata["annotations"].take() {
        Value::Object(annotations) => annotations,
        _ => Map::new(),
    };
    annotations.remove(&names::kept(arrived));
    annotations.remove(&names::kept(version));
    if !lost.is_empty() {
        let text = serde_json::to_string(lost).map_err(|why| ConvertError::Read { version, why })?;
        if text.len() > KEPT_BYTES_MAX {
            return Err(ConvertError::TooMuch { version, bytes: text.len() });
        }
        annotations.insert(names::kept(version), text.into());
    }
    match (annotations.is_empty(), metadata.as_object_mut()) {
        (true, Some(fields)) => drop(fields.remove("annotations")),
        (false, Some(fields)) => drop(fields.insert("annotations".into(), annotations.into())),
        (_, None) => {}
    }
    Ok(metadata)
}
