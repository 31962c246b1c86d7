//! The events of the operator's watches, which come late, twice or never.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use windlass_apiserver::{Body, BoxError};

use super::plan::EventFault;
use super::session::{Delivered, HELD, Session};

/// The body of a watch, as the operator sees it in this run.
pub(crate) fn through(body: Body, session: Arc<Session>, life: usize, resource: String) -> Body {
    let stream = Stream { body, session, life, resource, read: BytesMut::new(), pending: VecDeque::new(), over: false };
    let frames = futures::stream::unfold(stream, |mut stream| async move {
        let line = stream.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(line)), stream))
    });
    StreamBody::new(frames).boxed_unsync()
}

struct Stream {
    body: Body,
    session: Arc<Session>,
    life: usize,
    resource: String,
    read: BytesMut,
    pending: VecDeque<Bytes>,
    over: bool,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.over || !self.session.lives(self.life) {
                return None;
            }
            let line = self.line().await?;
            self.take(line).await;
        }
    }

    /// The next line of the API server.
    async fn line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                return Some(self.read.split_to(end + 1).freeze());
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }

    /// Decides when and how often the operator sees a line.
    async fn take(&mut self, line: Bytes) {
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let kind = event["type"].as_str().unwrap_or_default();
        if !matches!(kind, "ADDED" | "MODIFIED" | "DELETED") {
            return self.pending.push_back(line);
        }
        if let Some((until, _)) = self.session.view() {
            tokio::time::sleep(until.saturating_sub(self.session.now())).await;
        }
        let meta = &event["object"]["metadata"];
        let number = self.session.deliver(Delivered {
            step: 0,
            kind: kind.to_owned(),
            resource: self.resource.clone(),
            name: meta["name"].as_str().unwrap_or_default().to_owned(),
            revision: meta["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default(),
        });
        match self.session.plan.at_event(number) {
            None => self.pending.push_back(line),
            Some(EventFault::Twice) => self.pending.extend([line.clone(), line]),
            Some(EventFault::Delay) => {
                tokio::time::sleep(HELD).await;
                self.pending.push_back(line);
            }
            Some(EventFault::Cut) => self.over = true,
            Some(EventFault::Gone) => self.expire(),
            Some(EventFault::Blind) => {
                tokio::time::sleep(HELD).await;
                self.expire();
            }
            Some(EventFault::Overtaken) => {
                self.session.let_user_act().await;
                tokio::time::sleep(HELD).await;
                self.expire();
            }
        }
    }

    fn expire(&mut self) {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
            "message": "too old resource version",
        });
        self.pending.push_back(format!("{}\n", json!({"type": "ERROR", "object": status})).into());
        self.over = true;
    }
}
