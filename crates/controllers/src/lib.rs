//! The built-in controllers of the embedded cluster, written on the runtime like any operator.
