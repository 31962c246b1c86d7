//! Keeps memcached clusters running, as a program of its own.
fn main() {}
