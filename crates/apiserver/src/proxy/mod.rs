//! The `proxy` subresources: HTTP requests that are passed on to Pods, Services and nodes.

mod destination;
mod exchange;
mod headers;
mod link;
mod name;
mod page;
mod tag;

pub(crate) use exchange::{Proxy, proxy};
pub(crate) use headers::ClientAddress;
