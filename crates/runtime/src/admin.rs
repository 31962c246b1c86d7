//! The port for machines that look after this process: probes, metrics, and the journal.

use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::health::Health;
use crate::journal::{HISTORIES_MAX, Page, Question, Replica, Runs};
use crate::metrics::Metrics;
use crate::percent;
use crate::port::{Answer, json, text};

/// What the port tells.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    /// The journal, if it is told at this port, and who tells it.
    pub(crate) journal: Option<(Runs, Introduce)>,
}

/// Says who answers.
pub(crate) type Introduce = std::sync::Arc<dyn Fn() -> Replica + Send + Sync>;

/// Names with what is wrong, `None` if nothing is.
type Report = Vec<(String, Option<String>)>;

impl Admin {
    fn look_up(&self, method: &Method, path: &str, query: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
        }
        let path = path.trim_matches('/');
        let (root, check) = path.split_once('/').map_or((path, None), |(root, check)| (root, Some(check)));
        match (root, check) {
            ("healthz" | "livez", check) => tell(self.alive(), check, query),
            ("readyz", check) => tell(self.health.report(), check, query),
            ("metrics", None) => text(StatusCode::OK, self.metrics.render()),
            ("journal", None) => self.journal(query),
            _ => {
                text(StatusCode::NOT_FOUND, "there are /healthz, /readyz, /metrics and, with probes, /journal\n".into())
            }
        }
    }

    fn alive(&self) -> Report {
        let mut report = self.health.vital_report();
        report.insert(0, ("ping".to_owned(), None));
        report
    }

    fn journal(&self, query: &str) -> Response<Full<Bytes>> {
        let Some((runs, introduce)) = &self.journal else {
            let none = "the journal is told at the port of probes, unless the operator runs with --no-journal\n";
            return text(StatusCode::NOT_FOUND, none.into());
        };
        let question = match Question::parse(query) {
            Ok(question) => question,
            Err(why) => return text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        };
        let (objects, more) = runs.find(&question, HISTORIES_MAX);
        json(&Page { replica: introduce(), objects, more })
    }
}

/// What is well: of one check, or of all but those that are excluded.
fn tell(report: Report, check: Option<&str>, query: &str) -> Response<Full<Bytes>> {
    if let Some(check) = check {
        let wanted = name_of(&percent::decode(check));
        return match report.into_iter().find(|(name, _)| name_of(name) == wanted) {
            None => text(StatusCode::NOT_FOUND, format!("there is no check {wanted:?}\n")),
            Some((_, None)) => text(StatusCode::OK, "ok\n".into()),
            Some((_, Some(trouble))) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        };
    }
    let excluded: Vec<String> = (query.split('&'))
        .filter_map(|pair| pair.strip_prefix("exclude="))
        .map(|name| name_of(&percent::decode(name)))
        .collect();
    let (mut lines, mut is_well) = (String::new(), true);
    for (name, trouble) in report {
        lines += &match trouble {
            _ if excluded.contains(&name_of(&name)) => format!("[+]{name} excluded: ok\n"),
            None => format!("[+]{name} ok\n"),
            Some(trouble) => {
                is_well = false;
                format!("[-]{name} failed: {trouble}\n")
            }
        };
    }
    if is_well {
        text(StatusCode::OK, format!("{lines}ok\n"))
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, format!("{lines}not ok\n"))
    }
}

/// The name of a check as it can be typed into an address.
fn name_of(check: &str) -> String {
    check.replace(' ', "-")
}

impl Answer for Admin {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let uri = request.uri();
        self.look_up(request.method(), uri.path(), uri.query().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn admin() -> Admin {
        let introduce: Introduce = Arc::new(Replica::default);
        Admin { metrics: Metrics::new(), health: Health::default(), journal: Some((Runs::default(), introduce)) }
    }

    fn check(admin: &Admin, target: &str, expected: u16) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        assert_eq!(admin.look_up(&Method::GET, path, query).status(), expected, "{target}");
    }

    #[test]
    fn readiness_names_what_is_wrong_and_life_does_not_depend_on_it() {
        let admin = admin();
        check(&admin, "/readyz", 200);
        let trouble = admin.health.check("watch pods", "has not listed yet");
        let rows = [
            ("/readyz", 503),
            ("/readyz?verbose", 503),
            ("/readyz?exclude=watch-pods", 200),
            ("/readyz?exclude=watch%20pods&verbose", 200),
            ("/readyz/watch-pods", 503),
            ("/readyz/watch%20pods", 503),
            ("/readyz/webhooks", 404),
            ("/healthz", 200),
            ("/livez/ping", 200),
        ];
        for (target, expected) in rows {
            check(&admin, target, expected);
        }
        assert_eq!(admin.health.report(), [("watch pods".into(), Some("has not listed yet".into()))]);
        trouble.well();
        check(&admin, "/readyz", 200);
        check(&admin, "/readyz/watch-pods", 200);
        assert_eq!(admin.look_up(&Method::POST, "/readyz", "").status(), 405);
    }

    #[test]
    fn life_ends_with_what_cannot_recover_by_itself() {
        let admin = admin();
        admin.health.vital("workers of cache", || Some("a run does not end".into()));
        check(&admin, "/healthz", 503);
        check(&admin, "/healthz/ping", 200);
        check(&admin, "/healthz/workers-of-cache", 503);
        check(&admin, "/readyz", 200);
    }

    #[test]
    fn the_journal_is_told_where_it_is_meant_to_be_and_to_those_who_ask_right() {
        let with = admin();
        check(&with, "/journal", 200);
        check(&with, "/journal?kind=Cache&name=c", 200);
        check(&with, "/journal?color=red", 400);
        check(&Admin { journal: None, ..with }, "/journal", 404);
    }
}
