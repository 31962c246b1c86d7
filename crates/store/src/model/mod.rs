//! The store against a model of itself: random operations, loss of power at every step, and bugs that must be found.
//!
//! A run is a list of plain operations that follows from a seed. Each is done to the store and to the model, and what they
//! answer is compared; what watches deliver is held against the properties that etcd's robustness tests name. A run that
//! fails is made as short as it can be and printed. `WINDLASS_SEED=17 cargo test -p windlass-store model` does one again.

mod mutant;
mod operation;
mod reference;
mod run;
mod subject;
mod sweep;
mod watch;
