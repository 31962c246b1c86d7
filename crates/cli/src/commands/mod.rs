//! One module per command.

pub(crate) mod apply;
pub(crate) mod chaos;
pub(crate) mod completion;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod dev;
pub(crate) mod down;
pub(crate) mod envtest;
pub(crate) mod events;
pub(crate) mod get;
pub(crate) mod image;
pub(crate) mod init;
pub(crate) mod logs;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod why;
