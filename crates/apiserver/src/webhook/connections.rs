//! Connections to one other server, kept for the next call.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;

use super::Dialer;

/// How many idle connections to one server are kept, and for how long.
const IDLE_MAX: usize = 8;
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Connections to one server; a clone is the same.
pub(crate) type Connections = Client<HttpsConnector<Dialer>, Full<Bytes>>;

/// Connections that `dialer` makes and `tls` secures.
pub(crate) fn connections(tls: ClientConfig, dialer: Dialer) -> Connections {
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().wrap_connector(dialer);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME_MAX)
        .pool_max_idle_per_host(IDLE_MAX)
        .build(connector)
}
