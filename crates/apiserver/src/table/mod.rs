//! Tables: objects as rows of cells, the way `kubectl get` shows them.

mod age;
mod builtin;
mod cluster;
mod column;
mod custom;
mod metrics;
mod network;
mod pod;
mod security;
mod storage;
#[cfg(test)]
mod tests;
mod view;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) use custom::CustomColumn;

use column::Column;
use view::View;

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    /// Which part of the object comes with a row.
    pub(crate) include: IncludeObject,
    /// The version of the table.
    pub(crate) version: TableVersion,
    /// The time from which ages count.
    pub(crate) now: Timestamp,
}

/// Which part of the object comes with a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// The version of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TableVersion {
    /// `meta.k8s.io/v1`
    #[default]
    V1,
    /// `meta.k8s.io/v1beta1`
    V1beta1,
}

impl IncludeObject {
    /// Reads the query parameter `includeObject`; `None` for a value that does not exist.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

impl TableVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Shows the objects of one resource.
pub(crate) struct Tabler<'a> {
    printer: Printer<'a>,
}

enum Printer<'a> {
    Builtin(builtin::Printer),
    Custom(&'a [CustomColumn]),
}

impl<'a> Tabler<'a> {
    /// Shows a built-in resource; for a subresource that answers another kind, `resource` is its name (`scale`).
    pub(crate) fn builtin(group: &str, resource: &str) -> Self {
        Self { printer: Printer::Builtin(builtin::printer(group, resource)) }
    }

    /// Shows a custom resource.
    pub(crate) fn custom(columns: &'a [CustomColumn]) -> Self {
        Self { printer: Printer::Custom(columns) }
    }

    /// A table of objects; `metadata` is that of the list (or of the object, of which the revision is taken).
    pub(crate) fn table(&self, objects: &[Value], metadata: &Value, options: TableOptions) -> Value {
        let mut table = self.rows(objects, options);
        let kept = ["resourceVersion", "continue", "remainingItemCount"];
        let metadata: Map<String, Value> = kept
            .into_iter()
            .filter_map(|member| metadata.get(member).map(|value| (member.to_owned(), value.clone())))
            .collect();
        table["metadata"] = metadata.into();
        table["columnDefinitions"] = self.columns().iter().map(Column::definition).collect();
        table
    }

    /// A table without headings, as the later events of a watch carry it.
    pub(crate) fn rows(&self, objects: &[Value], options: TableOptions) -> Value {
        let is_plain = matches!(&self.printer, Printer::Builtin(printer) if printer.is_plain);
        let rows = match objects {
            // Kubernetes has no rows where it has no columns of its own, and an empty list of them elsewhere.
            [] if is_plain => Value::Null,
            _ => objects.iter().map(|object| self.row(object, options)).collect(),
        };
        let revision = objects.first().and_then(|object| object.pointer("/metadata/resourceVersion"));
        json!({
            "kind": "Table",
            "apiVersion": options.version.api_version(),
            "metadata": revision.map_or_else(|| json!({}), |revision| json!({"resourceVersion": revision})),
            "columnDefinitions": Value::Null,
            "rows": rows,
        })
    }

    fn columns(&self) -> Vec<Column> {
        match &self.printer {
            Printer::Builtin(printer) => printer.columns.clone(),
            Printer::Custom(columns) => {
                std::iter::once(Column::of_name()).chain(columns.iter().map(|custom| custom.column.clone())).collect()
            }
        }
    }

    fn row(&self, object: &Value, options: TableOptions) -> Value {
        let view = View { object, now: options.now };
        let cells = match &self.printer {
            Printer::Builtin(printer) => (printer.cells)(&view),
            Printer::Custom(columns) => std::iter::once(Value::from(view.name()))
                .chain(columns.iter().map(|custom| custom.cell(&view)))
                .collect(),
        };
        let shown = match options.include {
            IncludeObject::None => Value::Null,
            IncludeObject::Object => object.clone(),
            IncludeObject::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": options.version.api_version(),
                "metadata": object.get("metadata").unwrap_or(&Value::Null),
            }),
        };
        json!({"cells": cells, "object": shown})
    }
}
