//! Whole requests, answered by a whole API server.

use std::{sync::LazyLock, time::Duration};

use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::{
    runtime::{self, Runtime},
    time::timeout,
};
use windlass_store::{Snapshot, Store};

use super::line;
use crate::{
    Api, Body, Config,
    auth::{Auth, Peer, User},
    bootstrap::{Bootstrap, bootstrap},
    full,
};

/// How many requests of one text are sent.
const REQUESTS_MAX: usize = 4;
/// Watches go on; this much of them is looked at.
const WATCH_TIME: Duration = Duration::from_millis(5);

/// A server with what every cluster has, and the state to which it returns.
struct World {
    runtime: Runtime,
    api: Api,
    start: Snapshot,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let store = Store::in_memory();
    let settings = Bootstrap {
        endpoint: ([127, 0, 0, 1], 6443).into(),
        service_address: [10, 96, 0, 1].into(),
        service_range: Config::default().service_range,
        client_ca: None,
        front_proxy_ca: None,
        serves_metrics: false,
    };
    let now = jiff::Timestamp::now();
    runtime.block_on(bootstrap(&store, &settings, now)).expect("an empty store can be filled");
    let api = Api::idle(store.clone(), Auth::new(store.clone()), Config::default());
    World { runtime, api, start: store.snapshot() }
});

/// Requests, one after the other, separated by lines of `---`: a line `METHOD URI`, headers, an empty line, the body.
pub(super) fn server(bytes: &[u8]) {
    let world = &*WORLD;
    world.runtime.block_on(async {
        let mut rest = bytes;
        for _ in 0..REQUESTS_MAX {
            let (one, others) = split(rest);
            if let Some(request) = request(one) {
                let response = world.api.handle(request, &Peer::Local(User::master("fuzz"))).await;
                look_at(response).await;
            }
            rest = others;
        }
        world.api.restore(&world.start).await.expect("the store takes what it had");
    });
}

/// The first request, and the others.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    const SEPARATOR: &[u8] = b"\n---\n";
    match bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        Some(start) => (&bytes[..start], &bytes[start + SEPARATOR.len()..]),
        None => (bytes, &[]),
    }
}

fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let (first, mut rest) = line(bytes);
    let (method, uri) = std::str::from_utf8(first).ok()?.split_once(' ')?;
    // Webhooks and other servers would be called over the network.
    if ["webhook", "apiservices"].iter().any(|word| uri.contains(word)) {
        return None;
    }
    let mut request = Request::builder().method(method).uri(uri);
    loop {
        let (header, others) = line(rest);
        rest = others;
        let Some((name, value)) = std::str::from_utf8(header).ok()?.split_once(": ") else { break };
        request = request.header(name, value);
    }
    request.body(full(rest.to_vec())).ok()
}

/// Reads what there is of an answer.
async fn look_at(response: Response<Body>) {
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Ok(Some(Ok(frame))) = timeout(WATCH_TIME, body.frame()).await {
        text.extend(frame.into_data().unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&text);
    assert!(!text.contains("the request hit a bug"), "{text}");
}
