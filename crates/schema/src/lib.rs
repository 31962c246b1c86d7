//! The table of kinds: discovery facts, structural schemas, merge keys, protobuf descriptors, defaults.
