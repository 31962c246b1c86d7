//! The supervisor's own port: how the member is, for the node, for other members and for monitoring.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::names::STATUS_PORT;
use crate::wire::{Report, Role};

/// What is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    /// Of nobody until the member had its first look: "no data" and "not looked yet" are not the same.
    pub(crate) report: Report,
    /// Whether the member may be sent clients.
    pub(crate) is_ready: bool,
}

/// Answers until the process ends.
pub(crate) async fn serve(board: watch::Receiver<Board>) -> std::io::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, STATUS_PORT));
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let board = board.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &board.borrow());
                async move { Ok::<_, Infallible>(answer) }
            });
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer(request: &Request<Incoming>, board: &Board) -> Response<Full<Bytes>> {
    let (code, body) = match request.uri().path() {
        "/status" if board.report.member.is_empty() => (503, "the member has not looked at its data yet".to_owned()),
        "/status" => (200, serde_json::to_string(&board.report).unwrap_or_default()),
        "/readyz" if board.is_ready => (200, board.report.state.clone()),
        "/readyz" => (503, format!("{}: {}", board.report.state, board.report.message)),
        "/healthz" => (200, "ok".to_owned()),
        "/metrics" => (200, metrics(board)),
        _ => (404, "there are /status, /readyz, /healthz and /metrics".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or_default();
    response
}

/// The same report as figures.
fn metrics(board: &Board) -> String {
    let report = &board.report;
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    };
    gauge("postgres_ready", "Whether the member may be sent clients.", board.is_ready.into());
    gauge("postgres_primary", "Whether the member takes writes.", (report.role == Role::Primary).into());
    gauge("postgres_streaming", "Whether a standby receives.", report.streaming.into());
    gauge("postgres_pending_restart", "Whether settings wait for a restart.", report.pending_restart.into());
    if let Some(position) = report.position {
        gauge("postgres_timeline", "The timeline of the data.", position.timeline.into());
        gauge("postgres_lsn_bytes", "How far the data goes.", position.lsn);
    }
    let _ = writeln!(text, "# HELP postgres_lag_bytes How far a standby is behind.\n# TYPE postgres_lag_bytes gauge");
    for (member, lag) in &report.lags {
        let _ = writeln!(text, "postgres_lag_bytes{{member=\"{member}\"}} {lag}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Position;

    #[test]
    fn figures_are_those_of_the_report() {
        let position = Some(Position { timeline: 2, lsn: 7 });
        let lags = [("db-2".to_owned(), 5)].into();
        let report = Report { role: Role::Primary, position, lags, ..Report::default() };
        let text = metrics(&Board { report, is_ready: true });
        for line in
            ["postgres_ready 1", "postgres_primary 1", "postgres_timeline 2", "postgres_lag_bytes{member=\"db-2\"} 5"]
        {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
