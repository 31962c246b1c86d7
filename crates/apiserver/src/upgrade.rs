//! Connections that go on in another protocol: what client and server say to one another is passed on as it is.

use std::time::Duration;

use http::{
    HeaderMap, HeaderValue, Request, Response,
    header::{CONNECTION, UPGRADE},
};
use hyper::{
    body::Incoming,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::Body;

/// How long both sides may take to let go of HTTP.
const SWITCH_TIME_MAX: Duration = Duration::from_secs(10);

/// A client's wish to go on in another protocol.
pub(crate) struct Upgrade {
    protocol: HeaderValue,
    client: OnUpgrade,
}

impl Upgrade {
    /// What the client of a request wishes, if it does.
    pub(crate) fn wished(request: &mut Request<Body>) -> Option<Self> {
        let is_upgrade = |word: &str| word.trim().eq_ignore_ascii_case("upgrade");
        let words = request.headers().get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        if !words.flat_map(|value| value.split(',')).any(is_upgrade) {
            return None;
        }
        let protocol = request.headers().get(UPGRADE)?.clone();
        Some(Self { protocol, client: upgrade::on(request) })
    }

    /// Says the same to the server.
    pub(crate) fn say(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
    }

    /// The client's side, for somebody in this process who goes on with it.
    pub(crate) fn into_client(self) -> OnUpgrade {
        self.client
    }

    /// Joins the connections of a client and a server that agreed, until one of them ends or `stop`.
    pub(crate) fn join(self, response: &mut Response<Incoming>, permit: OwnedSemaphorePermit, stop: CancellationToken) {
        let server = upgrade::on(response);
        tokio::spawn(async move {
            let _permit = permit;
            let switched = tokio::time::timeout(SWITCH_TIME_MAX, async { tokio::try_join!(self.client, server) });
            let (client, server) = match switched.await {
                Ok(Ok(switched)) => switched,
                Ok(Err(error)) => return tracing::debug!(%error, "a connection could not be upgraded"),
                Err(_) => return tracing::debug!("a connection was not upgraded in time"),
            };
            let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            tokio::select! {
                () = stop.cancelled() => {}
                copied = tokio::io::copy_bidirectional(&mut client, &mut server) => {
                    tracing::trace!(?copied, "an upgraded connection ended");
                }
            }
        });
    }
}
