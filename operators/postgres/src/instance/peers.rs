//! What the other members say of themselves, asked again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use windlass::runtime::Clock;

use super::Identity;
use crate::names::{STATUS_PORT, host};
use crate::wire::Report;

/// Between two rounds.
const INTERVAL: Duration = Duration::from_millis(300);
/// Who does not answer by then does not answer.
const ANSWER_MAX: Duration = Duration::from_millis(800);
/// What was said longer ago does not count.
const AGE_MAX: Duration = Duration::from_secs(3);
/// A longer answer is none.
const BODY_MAX: usize = 64 << 10;

/// The last answers.
#[derive(Clone)]
pub(crate) struct Peers {
    answers: Arc<Mutex<BTreeMap<String, (Report, Duration)>>>,
    clock: Clock,
}

impl Peers {
    /// Begins to ask those that `members` names.
    pub(crate) fn ask(identity: Identity, clock: Clock, members: impl Fn() -> Vec<String> + Send + 'static) -> Self {
        let peers = Self { answers: Arc::default(), clock };
        let asking = peers.clone();
        tokio::spawn(async move {
            loop {
                let others: Vec<String> = members().into_iter().filter(|member| *member != identity.member).collect();
                join_all(others.iter().map(|member| asking.ask_one(&identity, member))).await;
                asking.clock.sleep(INTERVAL).await;
            }
        });
        peers
    }

    /// What was said not long ago, and, if it is said, not before `since`.
    pub(crate) fn answers(&self, since: Option<Duration>) -> BTreeMap<String, Report> {
        let oldest = self.clock.elapsed().saturating_sub(AGE_MAX).max(since.unwrap_or_default());
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = answers.iter().filter(|(_, (_, asked))| *asked >= oldest);
        fresh.map(|(name, (report, _))| (name.clone(), report.clone())).collect()
    }

    async fn ask_one(&self, identity: &Identity, member: &str) {
        let asked = self.clock.elapsed();
        let address = format!("{}:{STATUS_PORT}", host(&identity.cluster, member, &identity.namespace));
        if let Ok(Some(report)) = tokio::time::timeout(ANSWER_MAX, fetch(&address)).await {
            // Whoever answers under a name must be who it is.
            if report.member == member {
                let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.insert(member.to_owned(), (report, asked));
            }
        }
    }
}

async fn fetch(address: &str) -> Option<Report> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let request = Request::get("/status").header("host", "member").body(Empty::<Bytes>::new()).ok()?;
    let response = sender.send_request(request).await.ok()?;
    let body = Limited::new(response.into_body(), BODY_MAX).collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}
