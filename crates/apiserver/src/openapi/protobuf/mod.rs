//! OpenAPI in its protobuf forms, which some clients prefer.

mod message;
mod v2;
mod v3;

pub(super) use v2::encode as encode_v2;
pub(super) use v3::encode as encode_v3;

/// The types that clients ask for.
pub(super) const ACCEPTED_V2: [&str; 2] =
    ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", CONTENT_TYPE_V2];
pub(super) const ACCEPTED_V3: [&str; 2] =
    ["application/com.github.proto-openapi.spec.v3@v1.0+protobuf", CONTENT_TYPE_V3];
/// The types of the answers, which cannot have the `@`.
pub(super) const CONTENT_TYPE_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
pub(super) const CONTENT_TYPE_V3: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
