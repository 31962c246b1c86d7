//! The port for machines that look after this process: probes and metrics.

use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::health::Health;
use crate::metrics::Metrics;
use crate::port::{Answer, text};

/// What the port tells.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
}

impl Admin {
    fn look_up(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
        }
        match path.trim_end_matches('/') {
            "/healthz" | "/livez" => text(StatusCode::OK, "ok".into()),
            "/readyz" => self.ready(),
            "/metrics" => text(StatusCode::OK, self.metrics.render()),
            _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".into()),
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        let lines: String = (self.health.report().into_iter())
            .map(|(name, trouble)| match trouble {
                None => format!("[+]{name} ok\n"),
                Some(trouble) => format!("[-]{name} failed: {trouble}\n"),
            })
            .collect();
        if self.health.is_ready() {
            text(StatusCode::OK, format!("{lines}ok\n"))
        } else {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{lines}not ready\n"))
        }
    }
}

impl Answer for Admin {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.look_up(request.method(), request.uri().path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_is_wrong_and_life_does_not_depend_on_it() {
        let admin = Admin { metrics: Metrics::new(), health: Health::default() };
        assert_eq!(admin.look_up(&Method::GET, "/readyz").status(), 200);
        let check = admin.health.check("watch pods", "has not listed yet");
        assert_eq!(admin.look_up(&Method::GET, "/readyz").status(), 503);
        assert_eq!(admin.look_up(&Method::GET, "/healthz").status(), 200);
        assert_eq!(admin.health.report(), [("watch pods".into(), Some("has not listed yet".into()))]);
        check.well();
        assert_eq!(admin.look_up(&Method::GET, "/readyz").status(), 200);
        assert_eq!(admin.look_up(&Method::POST, "/readyz").status(), 405);
    }
}
