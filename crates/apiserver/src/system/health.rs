//! `/healthz`, `/livez` and `/readyz`, as a whole and check by check.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Response, StatusCode};

use super::text;
use crate::query::Query;

const PLAIN: &str = "text/plain; charset=utf-8";
const PATHS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Whether the server is well and ready.
#[derive(Debug, Default)]
pub struct Health {
    bootstrapped: AtomicBool,
    stopping: AtomicBool,
}

struct Check {
    name: &'static str,
    problem: Option<&'static str>,
}

impl Health {
    /// Says that the objects of a new cluster are there.
    pub fn set_bootstrapped(&self) {
        self.bootstrapped.store(true, Ordering::Release);
    }

    /// Says that the server is about to stop: it lives, but is no longer ready.
    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn respond(&self, path: &str, query: &Query) -> Option<Response<Bytes>> {
        let (kind, single) = match path.trim_start_matches('/').split_once('/') {
            Some((kind, single)) => (kind, Some(single)),
            None => (path.trim_start_matches('/'), None),
        };
        if !PATHS.contains(&kind) {
            return None;
        }
        let checks = self.checks(kind);
        match single {
            None => Some(summary(kind, &checks, query)),
            Some(single) => checks.iter().find(|check| check.name == single).map(|check| match check.problem {
                None => text(StatusCode::OK, PLAIN, "ok".to_owned()),
                Some(problem) => failed(format!("internal server error: {problem}")),
            }),
        }
    }

    fn checks(&self, kind: &str) -> Vec<Check> {
        let bootstrapped = self.bootstrapped.load(Ordering::Acquire);
        let mut checks = vec![
            Check { name: "ping", problem: None },
            Check { name: "etcd", problem: None },
            Check { name: "poststarthook/rbac/bootstrap-roles", problem: (!bootstrapped).then_some("not finished") },
        ];
        if kind == "readyz" {
            let stopping = self.stopping.load(Ordering::Acquire);
            checks.push(Check { name: "shutdown", problem: stopping.then_some("process is shutting down") });
        }
        checks
    }
}

fn summary(kind: &str, checks: &[Check], query: &Query) -> Response<Bytes> {
    let mut lines = String::new();
    let mut healthy = true;
    let excluded: Vec<&str> = query.all("exclude").collect();
    for Check { name, problem } in checks {
        let line = match problem {
            _ if excluded.contains(name) => format!("[+]{name} excluded: ok\n"),
            None => format!("[+]{name} ok\n"),
            // The endpoint is public; the check's own path tells more.
            Some(_) => {
                healthy = false;
                format!("[-]{name} failed: reason withheld\n")
            }
        };
        lines.push_str(&line);
    }
    match healthy {
        false => failed(format!("{lines}{kind} check failed\n")),
        true if query.all("verbose").next().is_some() => {
            text(StatusCode::OK, PLAIN, format!("{lines}{kind} check passed\n"))
        }
        true => text(StatusCode::OK, PLAIN, "ok".to_owned()),
    }
}

fn failed(message: String) -> Response<Bytes> {
    text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &Health, path: &str, query: &str, expected: Option<(u16, &str)>) {
        let response = health.respond(path, &Query::parse(Some(query)));
        let found = response.map(|response| (response.status().as_u16(), response.into_body()));
        let found = found.as_ref().map(|(code, body)| (*code, std::str::from_utf8(body).unwrap()));
        assert_eq!(found, expected, "{path}?{query}");
    }

    #[test]
    fn a_server_is_ready_between_start_and_stop() {
        let health = Health::default();
        let hook = "poststarthook/rbac/bootstrap-roles";
        let failed = format!("[+]ping ok\n[+]etcd ok\n[-]{hook} failed: reason withheld\nhealthz check failed\n");
        check(&health, "/healthz", "", Some((500, &failed)));
        check(&health, "/healthz", &format!("exclude={hook}"), Some((200, "ok")));
        check(&health, &format!("/readyz/{hook}"), "", Some((500, "internal server error: not finished")));

        health.set_bootstrapped();
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz/shutdown"] {
            check(&health, path, "", Some((200, "ok")));
        }
        let passed = format!("[+]ping ok\n[+]etcd ok\n[+]{hook} ok\nlivez check passed\n");
        check(&health, "/livez", "verbose", Some((200, &passed)));
        check(&health, "/livez/none", "", None);
        check(&health, "/other", "", None);

        health.set_stopping();
        check(&health, "/livez", "", Some((200, "ok")));
        check(&health, "/readyz/shutdown", "", Some((500, "internal server error: process is shutting down")));
    }
}
