//! The scale of a custom resource: replicas at paths that its definition names.

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::definition::Scale;

/// Where the numbers of a scale stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    spec_replicas: Vec<String>,
    status_replicas: Vec<String>,
    selector: Option<Vec<String>>,
}

impl ScalePaths {
    /// Reads the paths; validation has refused all but dotted names.
    pub(crate) fn new(scale: &Scale) -> Self {
        let names = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>();
        let selector = scale.label_selector_path.as_deref().filter(|path| !path.is_empty());
        Self {
            spec_replicas: names(&scale.spec_replicas_path),
            status_replicas: names(&scale.status_replicas_path),
            selector: selector.map(names),
        }
    }

    /// The `autoscaling/v1` Scale of an object; `None` without a number of wanted replicas.
    pub(crate) fn read(&self, object: &Value) -> Option<Value> {
        let wanted = at(object, &self.spec_replicas).and_then(Value::as_i64)?;
        let current = at(object, &self.status_replicas).and_then(Value::as_i64).unwrap_or(0);
        let mut status = json!({"replicas": current});
        if let Some(selector) = self.selector.as_ref().and_then(|path| at(object, path)).and_then(Value::as_str) {
            status["selector"] = selector.into();
        }
        let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let metadata = object.get("metadata");
        let metadata: Map<String, Value> =
            kept.into_iter().filter_map(|member| Some((member.to_owned(), metadata?.get(member)?.clone()))).collect();
        Some(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": {"replicas": wanted},
            "status": status,
        }))
    }

    /// Writes the wanted replicas of a Scale into an object.
    ///
    /// # Errors
    /// The number is missing, negative or too large.
    pub(crate) fn write(&self, object: &mut Value, scale: &Value) -> Result<(), FieldError> {
        let wanted = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        let Some(number) = wanted.as_i64() else {
            return Err(FieldError::invalid("spec.replicas", wanted, "must be an integer"));
        };
        if number < 0 {
            return Err(FieldError::invalid("spec.replicas", number, "should be a non-negative integer"));
        }
        if number > i64::from(i32::MAX) {
            return Err(FieldError::invalid("spec.replicas", number, "should be less than or equal to 2147483647"));
        }
        set(object, &self.spec_replicas, number.into());
        Ok(())
    }

    /// The dotted path of the wanted replicas, for the ownership of fields.
    pub(crate) fn spec_replicas(&self) -> &[String] {
        &self.spec_replicas
    }

    /// What is wrong with the numbers at the paths.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let numbers = [&self.spec_replicas, &self.status_replicas];
        let mut errors: Vec<FieldError> = numbers.into_iter().filter_map(|path| number_error(object, path)).collect();
        if let Some(path) = &self.selector
            && let Some(value) = at(object, path).filter(|value| !value.is_string())
        {
            errors.push(FieldError::invalid(dotted(path), value.clone(), accessor_error(path, value, "string")));
        }
        errors
    }
}

fn number_error(object: &Value, path: &[String]) -> Option<FieldError> {
    let value = at(object, path)?;
    match value.as_i64() {
        // What could not be read is shown as zero.
        None => Some(FieldError::invalid(dotted(path), 0, accessor_error(path, value, "int64"))),
        Some(..0) => Some(FieldError::invalid(dotted(path), value.clone(), "should be a non-negative integer")),
        Some(number) if number > i64::from(i32::MAX) => {
            Some(FieldError::invalid(dotted(path), number, "should be less than or equal to 2147483647"))
        }
        Some(_) => None,
    }
}

fn accessor_error(path: &[String], value: &Value, expected: &str) -> String {
    let found = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{} accessor error: {value} is of the type {found}, expected {expected}", dotted(path))
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn set(object: &mut Value, path: &[String], value: Value) {
    let mut place = object;
    for name in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let members = place.as_object_mut().expect("made a map above");
        place = members.entry(name.clone()).or_insert(Value::Null);
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> ScalePaths {
        ScalePaths::new(&Scale {
            spec_replicas_path: ".spec.size".into(),
            status_replicas_path: ".status.replicas".into(),
            label_selector_path: Some(".status.selector".into()),
        })
    }

    #[test]
    fn a_scale_reads_and_writes_the_paths() {
        let mut object = json!({"metadata": {"name": "x", "uid": "u", "labels": {}}, "spec": {"size": 3}, "status": {"replicas": 2, "selector": "app=x"}});
        let scale = paths().read(&object).unwrap();
        assert_eq!(scale["spec"]["replicas"], 3);
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=x"}));
        assert_eq!(scale["metadata"], json!({"name": "x", "uid": "u"}));
        paths().write(&mut object, &json!({"spec": {"replicas": 5}})).unwrap();
        assert_eq!(object["spec"]["size"], 5);
        assert_eq!(paths().read(&json!({"spec": {}})), None);
    }

    #[test]
    fn bad_numbers_are_refused() {
        let mut object = json!({});
        assert!(paths().write(&mut object, &json!({"spec": {"replicas": -1}})).is_err());
        assert!(paths().write(&mut object, &json!({"spec": {"replicas": 3_000_000_000_u64}})).is_err());
        assert!(paths().write(&mut object, &json!({"spec": {"replicas": "5"}})).is_err());
        let errors = paths().validate(&json!({"spec": {"size": "three"}, "status": {"replicas": -1, "selector": 1}}));
        assert_eq!(errors.len(), 3);
        assert_eq!(paths().validate(&json!({"spec": {"size": 3}})), vec![]);
    }
}
