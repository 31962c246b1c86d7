//! HTTP endpoints by which the world outside tells that something changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};

use crate::port::{Answer, text};

/// A longer body is refused.
const BODY_BYTES_MAX: usize = 1 << 20;
/// A body that takes longer is refused.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// Takes in a request: how many keys it concerns, or why it is refused.
pub(crate) type TakeIn = Arc<dyn Fn(&Request<Bytes>) -> Result<usize, String> + Send + Sync>;

/// The endpoints of one manager, by path; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Endpoints(Arc<Mutex<BTreeMap<String, TakeIn>>>);

/// An endpoint that is there until this is dropped.
pub(crate) struct Opened {
    endpoints: Endpoints,
    path: String,
}

impl Endpoints {
    /// Lets `take_in` answer at `path`.
    pub(crate) fn open(&self, path: &str, take_in: TakeIn) -> Opened {
        let path = format!("/{}", path.trim_matches('/'));
        self.lock().insert(path.clone(), take_in);
        Opened { endpoints: self.clone(), path }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TakeIn>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }

    fn take_in(&self, request: &Request<Bytes>) -> Response<Full<Bytes>> {
        let path = request.uri().path().trim_end_matches('/');
        let Some(take_in) = self.lock().get(path).cloned() else {
            // Where another replica leads, none is open here: whoever asks should ask again.
            let none = "there is no such endpoint, or this replica does not lead\n";
            return text(StatusCode::SERVICE_UNAVAILABLE, none.into());
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| take_in(request))) {
            Ok(Ok(keys)) => text(StatusCode::ACCEPTED, format!("{keys} to look at\n")),
            Ok(Err(why)) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the endpoint failed\n".into()),
        }
    }
}

impl Answer for Endpoints {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST && request.method() != Method::PUT {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only POST and PUT\n".into());
        }
        let (parts, body) = request.into_parts();
        match tokio::time::timeout(BODY_TIME_MAX, Limited::new(body, BODY_BYTES_MAX).collect()).await {
            Ok(Ok(body)) => self.take_in(&Request::from_parts(parts, body.to_bytes())),
            Ok(Err(_)) => text(StatusCode::PAYLOAD_TOO_LARGE, format!("at most {BODY_BYTES_MAX} bytes\n")),
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, format!("within {BODY_TIME_MAX:?}\n")),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.endpoints.lock().remove(&self.path);
    }
}
