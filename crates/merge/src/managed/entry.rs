//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fields::{FieldSet, FieldsError};

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the manager.
    pub manager: String,
    /// How it came to own the fields.
    pub operation: Operation,
    /// The version in which the fields are named.
    pub api_version: String,
    /// When the fields, or what they hold, last changed by this manager.
    pub time: Option<Timestamp>,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
    /// The fields.
    pub fields: FieldSet,
}

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply: the manager says all that it wants.
    Apply,
    /// By create, update or patch: the manager changes something.
    Update,
}

/// Why `metadata.managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The field is not a list of objects.
    #[error("metadata.managedFields must be a list of objects")]
    NotList,
    /// The operation is missing or not known.
    #[error("metadata.managedFields[{0}].operation must be `Apply` or `Update`")]
    Operation(usize),
    /// The API version is missing.
    #[error("metadata.managedFields[{0}].apiVersion must not be empty")]
    ApiVersion(usize),
    /// The format is missing or not known.
    #[error("metadata.managedFields[{0}].fieldsType must be `FieldsV1`")]
    FieldsType(usize),
    /// The time is not RFC 3339.
    #[error("metadata.managedFields[{0}].time must be an RFC 3339 time")]
    Time(usize),
    /// The set of fields is broken.
    #[error("metadata.managedFields[{0}].{1}")]
    Fields(usize, #[source] FieldsError),
}

/// Reads `metadata.managedFields`; nothing there is no entries.
///
/// # Errors
/// An entry is not in the form that [`encode`] writes.
pub fn decode(managed_fields: Option<&Value>) -> Result<Vec<Entry>, EntryError> {
    match managed_fields {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(entries)) => entries.iter().enumerate().map(decode_entry).collect(),
        Some(_) => Err(EntryError::NotList),
    }
}

/// Writes `metadata.managedFields` in the order in which entries are shown: applied before updated, oldest first.
pub fn encode(mut entries: Vec<Entry>) -> Value {
    entries.sort_by(|left, right| order_of(left).cmp(&order_of(right)));
    entries.iter().map(encode_entry).collect()
}

/// The name under which entries are told apart: an applier is the same in every version, an updater is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManagerId {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) api_version: Option<String>,
    pub(super) subresource: String,
}

/// All entries of an object by manager.
pub(super) type Managers = BTreeMap<ManagerId, Entry>;

pub(super) fn by_manager(entries: Vec<Entry>) -> Managers {
    entries.into_iter().map(|entry| (ManagerId::of(&entry), entry)).collect()
}

impl ManagerId {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            name: entry.manager.clone(),
            operation: entry.operation,
            api_version: (entry.operation == Operation::Update).then(|| entry.api_version.clone()),
            subresource: entry.subresource.clone(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        })
    }
}

fn order_of(entry: &Entry) -> (Operation, i64, &str, &str, &str) {
    let seconds = entry.time.map_or(0, Timestamp::as_second);
    (entry.operation, seconds, &entry.manager, &entry.api_version, &entry.subresource)
}

fn decode_entry((index, entry): (usize, &Value)) -> Result<Entry, EntryError> {
    let entry = entry.as_object().ok_or(EntryError::NotList)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(EntryError::Operation(index)),
    };
    if text("apiVersion").is_empty() {
        return Err(EntryError::ApiVersion(index));
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(EntryError::FieldsType(index));
    }
    let time = match entry.get("time") {
        None | Some(Value::Null) => None,
        Some(time) => {
            let time = time.as_str().and_then(|time| time.parse().ok());
            Some(time.ok_or(EntryError::Time(index))?)
        }
    };
    let fields = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null));
    Ok(Entry {
        manager: text("manager").to_owned(),
        operation,
        api_version: text("apiVersion").to_owned(),
        time,
        subresource: text("subresource").to_owned(),
        fields: fields.map_err(|error| EntryError::Fields(index, error))?,
    })
}

fn encode_entry(entry: &Entry) -> Value {
    let mut object = Map::new();
    object.insert("manager".to_owned(), entry.manager.clone().into());
    object.insert("operation".to_owned(), entry.operation.to_string().into());
    object.insert("apiVersion".to_owned(), entry.api_version.clone().into());
    if let Some(time) = entry.time {
        object.insert("time".to_owned(), time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
    }
    object.insert("fieldsType".to_owned(), "FieldsV1".into());
    object.insert("fieldsV1".to_owned(), entry.fields.to_fields_v1());
    if !entry.subresource.is_empty() {
        object.insert("subresource".to_owned(), entry.subresource.clone().into());
    }
    Value::Object(object)
}
