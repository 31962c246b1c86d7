//! The node agent: Pods as sandboxed host processes.
