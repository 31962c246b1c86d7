//! What holds of operators that are written as handlers.

mod daemons;
mod progress;
mod stage;
mod switches;
