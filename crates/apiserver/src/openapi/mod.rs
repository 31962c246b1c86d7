//! OpenAPI documents of everything that is served.
