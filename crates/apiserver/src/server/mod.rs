//! The ways to the API: network connections and callers in this process.

mod connection;
mod gathered;
mod local;
mod tls;

pub use connection::serve;
pub use local::{Local, local};
pub use tls::{Tls, TlsError};
