//! Bodies in and out: JSON, YAML, protobuf, tables, partial metadata.
