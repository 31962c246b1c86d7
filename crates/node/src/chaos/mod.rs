//! Faults on purpose: what a `Chaos` asks for is done to the Pods of this node, told in its status, and always undone.

mod aim;
mod board;
mod course;
mod cuts;
mod plan;
mod resource;
mod round;
mod run;
mod telling;

pub use plan::DURATION_MAX;
pub use resource::{
    Chaos, ChaosSpec, ChaosStatus, Disconnect, Fault, Fill, Mode, Phase, Repeat, Side, Skew, Slow, Target, Victim,
    VictimState,
};

pub(crate) use board::{Ailment, Board};
pub(crate) use cuts::{Cuts, Separations};
pub(crate) use run::run;

/// The annotation of a Pod whose programs are asked about their writes to files, and its value.
pub const ANNOTATION: &str = "windlass.dev/chaos";
/// The value of [`ANNOTATION`] that asks for it.
pub const DISK: &str = "disk";
