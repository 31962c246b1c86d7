//! CEL rules of schemas and policies.
