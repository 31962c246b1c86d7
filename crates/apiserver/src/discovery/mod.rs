//! What is served, in both forms of discovery.
