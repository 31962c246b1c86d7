//! What a column is called and how it is shown.

use serde_json::{Value, json};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The heading.
    pub(crate) name: String,
    /// The OpenAPI type of the cells.
    pub(crate) kind: String,
    /// The OpenAPI format of the cells; `name` marks the name of the object.
    pub(crate) format: String,
    /// What it shows, for people.
    pub(crate) description: String,
    /// 0 is always shown, more only in wide output.
    pub(crate) priority: i64,
}

impl Column {
    /// The column as clients read it.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// The column of the object's name, first in nearly every table.
    pub(super) fn of_name() -> Self {
        Self { format: "name".into(), ..Self::new("Name", "string", 0) }
    }

    fn new(name: &str, kind: &str, priority: i64) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: String::new(),
            description: String::new(),
            priority,
        }
    }
}

/// Columns in short: `Name Ready Restarts:integer IP*`, where `*` marks wide output and `_` stands for a space.
pub(super) fn columns(line: &str) -> Vec<Column> {
    line.split_whitespace()
        .map(|word| {
            let (word, priority) = word.strip_suffix('*').map_or((word, 0), |word| (word, 1));
            let (name, kind) = word.split_once(':').unwrap_or((word, "string"));
            let mut column = Column::new(&name.replace('_', " "), kind, priority);
            if name == "Name" {
                column.format = "name".into();
            }
            column
        })
        .collect()
}
