//! Custom resource definitions: naming, establishing, schemas, conversion.
