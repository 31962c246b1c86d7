//! JSONPath as Kubernetes writes it: printer columns, scale paths, selectable fields.

mod evaluate;
mod parse;

use serde_json::Value;

/// The longest accepted path.
const PATH_BYTES_MAX: usize = 4096;
/// The most values that one step may yield; what comes after is left out.
const RESULTS_MAX: usize = 10_000;
/// The most values that are looked at for one path; what would come after is left out.
const TURNS_MAX: usize = 1_000_000;
/// How deep filters may nest.
const FILTER_DEPTH_MAX: usize = 8;

/// A parsed path, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

/// A path that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonPathError {
    #[error("is longer than {PATH_BYTES_MAX} bytes")]
    TooLong,
    #[error("must start with a leading dot or '['")]
    NoLeadingDot,
    #[error("unterminated {0}")]
    Unterminated(&'static str),
    #[error("invalid array index {0}")]
    Index(String),
    #[error("unexpected character {0:?} at {1}")]
    Unexpected(char, usize),
    #[error("filters nest deeper than {FILTER_DEPTH_MAX}")]
    TooDeep,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Step>),
    Filter(Box<Filter>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    single: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a path without braces, as CRDs write it.
    pub(crate) fn parse(path: &str) -> Result<Self, JsonPathError> {
        parse::path(path).map(|steps| Self { steps })
    }

    /// The values that the path names in `root`; missing fields name nothing.
    pub(crate) fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        evaluate::run(&self.steps, root, &mut evaluate::Allowance::new())
    }

    /// The first of the values that the path names.
    pub(crate) fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }

    /// The plain field names of the path, or `None` if it has anything else in it.
    pub(crate) fn fields(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        json!({
            "spec": {"replicas": 3, "a.b": "dotted", "names": ["x", "y", "z"], "nothing": null},
            "status": {"conditions": [
                {"type": "Progressing", "status": "True", "weight": 1},
                {"type": "Ready", "status": "False", "weight": 7},
            ]},
            "items": [{"n": {"v": 1}}, {"n": {"v": 2}}],
        })
    }

    #[test]
    fn paths_name_values() {
        let rows: &[(&str, Value)] = &[
            (".spec.replicas", json!([3])),
            (".spec.absent.deeper", json!([])),
            (".spec['a.b']", json!(["dotted"])),
            (".spec.a\\.b", json!(["dotted"])),
            (".spec.names[0]", json!(["x"])),
            (".spec.names[-1]", json!(["z"])),
            (".spec.names[9]", json!([])),
            (".spec.names[0:2]", json!(["x", "y"])),
            (".spec.names[::2]", json!(["x", "z"])),
            (".spec.names[0,2]", json!(["x", "z"])),
            (".spec.names[*]", json!(["x", "y", "z"])),
            (".items[*].n.v", json!([1, 2])),
            ("..v", json!([1, 2])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["False"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["False"])),
            (".status.conditions[?(@.type != 'Ready')].type", json!(["Progressing"])),
            (".status.conditions[?(@.weight > 3)].type", json!(["Ready"])),
            (".status.conditions[?(@.absent)].type", json!([])),
            (".spec.nothing", json!([null])),
            (".spec.replicas.deeper", json!([])),
            ("$.spec.replicas", json!([3])),
        ];
        let root = sample();
        for (path, expected) in rows {
            let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&root).into_iter().cloned().collect();
            assert_eq!(&Value::from(found), expected, "{path}");
        }
    }

    #[test]
    fn filters_in_filters_come_to_an_end() {
        let path = format!("{}.x{}", "..[?(@".repeat(FILTER_DEPTH_MAX), ")]".repeat(FILTER_DEPTH_MAX));
        let deep = (0..100).fold(json!({}), |inner, _| json!([inner]));
        assert_eq!(JsonPath::parse(&path).unwrap().find(&deep), [] as [&Value; 0]);
    }

    #[test]
    fn broken_paths_are_refused() {
        for path in [".spec[", ".spec['a", ".a[?(@.b==", ".a[x]", ".a[1:2:3:4]", ".a[?(@.b ~ 1)]", "spec"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(PATH_BYTES_MAX)), Err(JsonPathError::TooLong));
        let deep = format!(".a{}{}", "[?(@".repeat(20), ")]".repeat(20));
        assert_eq!(JsonPath::parse(&deep), Err(JsonPathError::TooDeep));
    }
}
