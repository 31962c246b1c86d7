//! Built-in admission: what changes or refuses a write before it is stored.
