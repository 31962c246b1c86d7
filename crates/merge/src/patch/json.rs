//! JSON patch (RFC 6902).
//!
//! Where the API servers in the field are more lenient than the standard, clients rely on it, and so are we: `replace`
//! sets a member that is not there, `test` finds null where nothing is, and negative indexes count from the end.

use serde_json::{Map, Value};

use super::PatchError;
use crate::order;

/// How many operations a patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// How many bytes all `copy` operations of a patch may make together.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How deep a patch may nest values; what is deeper than the JSON parser reads could never be read back.
const DEPTH_MAX: usize = 100;

/// Applies a JSON patch, all of it or nothing.
///
/// # Errors
/// [`PatchError::Malformed`] if it is not a list of operations, [`PatchError::TestFailed`] and
/// [`PatchError::Inapplicable`] if an operation does not fit the target.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::json_patch;
///
/// let mut target = json!({"spec": {"replicas": 1}});
/// json_patch(&mut target, &json!([{"op": "replace", "path": "/spec/replicas", "value": 2}]))?;
/// assert_eq!(target, json!({"spec": {"replicas": 2}}));
/// # Ok::<(), windlass_merge::PatchError>(())
/// ```
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = patch.as_array().ok_or_else(|| malformed("a JSON patch must be a list of operations"))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations { max: OPERATIONS_MAX, given: operations.len() });
    }
    let operations = operations.iter().enumerate().map(|(index, operation)| {
        Operation::read(operation).map_err(|reason| malformed(&format!("operation {index}: {reason}")))
    });
    let operations = operations.collect::<Result<Vec<_>, _>>()?;
    let mut patched = target.clone();
    let mut copied = 0;
    for operation in &operations {
        operation.apply(&mut patched, &mut copied)?;
    }
    *target = patched;
    Ok(())
}

enum Operation<'a> {
    Add { path: &'a str, value: &'a Value },
    Remove { path: &'a str },
    Replace { path: &'a str, value: &'a Value },
    Move { from: &'a str, path: &'a str },
    Copy { from: &'a str, path: &'a str },
    Test { path: &'a str, value: &'a Value },
}

impl<'a> Operation<'a> {
    fn read(operation: &'a Value) -> Result<Self, String> {
        let operation = operation.as_object().ok_or("must be an object")?;
        let path = pointer(operation, "path")?;
        let value = || operation.get("value").ok_or_else(|| "`value` is missing".to_owned());
        let from = || pointer(operation, "from");
        match operation.get("op").and_then(Value::as_str) {
            Some("add") => Ok(Self::Add { path, value: value()? }),
            Some("remove") => Ok(Self::Remove { path }),
            Some("replace") => Ok(Self::Replace { path, value: value()? }),
            Some("move") => Ok(Self::Move { from: from()?, path }),
            Some("copy") => Ok(Self::Copy { from: from()?, path }),
            Some("test") => Ok(Self::Test { path, value: operation.get("value").unwrap_or(&Value::Null) }),
            Some(op) => Err(format!("`op` must be add, remove, replace, move, copy or test, not {op:?}")),
            None => Err("`op` is missing".to_owned()),
        }
    }

    fn apply(&self, target: &mut Value, copied: &mut usize) -> Result<(), PatchError> {
        match self {
            Self::Add { path, value } => Place::of(target, path, "add")?.add((*value).clone()),
            Self::Remove { path } => Place::of(target, path, "remove")?.remove().map(drop),
            Self::Replace { path: "", value } => {
                *target = (*value).clone();
                Ok(())
            }
            Self::Replace { path, value } => Place::of(target, path, "replace")?.set((*value).clone()),
            Self::Move { from, path } => {
                let value = Place::of(target, from, "move")?.remove()?;
                Place::of(target, path, "move")?.add(value)
            }
            Self::Copy { from, path } => {
                let value = Place::of(target, from, "copy")?.get()?.cloned().unwrap_or_default();
                *copied += value.to_string().len();
                if *copied > COPIED_BYTES_MAX {
                    return Err(inapplicable(format!("copy operations make more than {COPIED_BYTES_MAX} bytes")));
                }
                Place::of(target, path, "copy")?.add(value)
            }
            Self::Test { path, value } => {
                let found = if path.is_empty() { Some(&*target) } else { Place::of(target, path, "test")?.get()? };
                if order::same(found.unwrap_or(&Value::Null), value) {
                    return Ok(());
                }
                Err(PatchError::TestFailed { path: (*path).to_owned() })
            }
        }
    }
}

/// A member or item that may or may not be there, in a map or list that is.
struct Place<'t> {
    container: Container<'t>,
    key: String,
    path: String,
    operation: &'static str,
}

enum Container<'t> {
    Map(&'t mut Map<String, Value>),
    List(&'t mut Vec<Value>),
}

impl<'t> Place<'t> {
    fn of(target: &'t mut Value, path: &str, operation: &'static str) -> Result<Self, PatchError> {
        let missing = || inapplicable(format!("{operation} operation does not apply: doc is missing path: {path:?}"));
        let mut steps = path.strip_prefix('/').ok_or_else(missing)?.split('/').map(unescaped);
        let key = steps.next_back().ok_or_else(missing)?;
        let container = steps.try_fold(target, |value, step| match value {
            Value::Object(members) => members.get_mut(&step),
            Value::Array(items) => {
                let index = position(&step, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        });
        let container = match container.ok_or_else(missing)? {
            Value::Object(members) => Container::Map(members),
            Value::Array(items) => Container::List(items),
            _ => return Err(missing()),
        };
        Ok(Self { container, key, path: path.to_owned(), operation })
    }

    fn get(self) -> Result<Option<&'t Value>, PatchError> {
        let invalid = self.invalid();
        match self.container {
            Container::Map(members) => Ok(members.get(&self.key)),
            Container::List(items) => {
                let index = position(&self.key, items.len()).ok_or_else(|| invalid.clone())?;
                items.get(index).map(Some).ok_or(invalid)
            }
        }
    }

    fn add(self, value: Value) -> Result<(), PatchError> {
        self.check_depth(&value)?;
        let invalid = self.invalid();
        match self.container {
            Container::Map(members) => drop(members.insert(self.key, value)),
            Container::List(items) if self.key == "-" => items.push(value),
            Container::List(items) => {
                let index = position(&self.key, items.len() + 1).filter(|index| *index <= items.len());
                items.insert(index.ok_or(invalid)?, value);
            }
        }
        Ok(())
    }

    fn set(self, value: Value) -> Result<(), PatchError> {
        self.check_depth(&value)?;
        let invalid = self.invalid();
        match self.container {
            Container::Map(members) => drop(members.insert(self.key, value)),
            Container::List(items) => {
                let index = position(&self.key, items.len());
                *index.and_then(|index| items.get_mut(index)).ok_or(invalid)? = value;
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, PatchError> {
        let invalid = self.invalid();
        match self.container {
            Container::Map(members) => members.remove(&self.key).ok_or(invalid),
            Container::List(items) => {
                let index = position(&self.key, items.len()).filter(|index| *index < items.len());
                Ok(items.remove(index.ok_or(invalid)?))
            }
        }
    }

    fn check_depth(&self, value: &Value) -> Result<(), PatchError> {
        match self.path.matches('/').count() + depth(value) {
            depth if depth > DEPTH_MAX => Err(inapplicable(format!("{:?} would be {depth} levels deep", self.path))),
            _ => Ok(()),
        }
    }

    fn invalid(&self) -> PatchError {
        let what = match self.container {
            Container::Map(_) => "there is no member",
            Container::List(_) => "there is no item",
        };
        inapplicable(format!("error in {} for path {:?}: {what} {:?}", self.operation, self.path, self.key))
    }
}

fn pointer<'a>(operation: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match operation.get(name).and_then(Value::as_str) {
        Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => Ok(pointer),
        Some(pointer) => Err(format!("`{name}` must begin with a slash, got {pointer:?}")),
        None => Err(format!("`{name}` is missing")),
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The position that an index names in a list of this length; one that is too large is the caller's to refuse.
fn position(index: &str, length: usize) -> Option<usize> {
    match index.strip_prefix('-') {
        Some(from_end) => length.checked_sub(from_end.parse().ok()?),
        None => index.parse().ok(),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn malformed(reason: &str) -> PatchError {
    PatchError::Malformed(reason.to_owned())
}

fn inapplicable(reason: String) -> PatchError {
    PatchError::Inapplicable(reason)
}
