//! The events of a watch, a line each.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use crate::connection::Connection;

/// The largest event: the largest object of a server, and what is around it.
const LINE_MAX: usize = 8 << 20;

/// A watch that is open.
pub(crate) struct Events {
    connection: Connection,
    /// The collection, and the version of it that was read last.
    path: String,
    version: String,
    body: Incoming,
    rest: Vec<u8>,
    /// How far `rest` was searched for the end of a line.
    searched: usize,
}

impl Events {
    /// Watches the collection at `path` from `version` on.
    pub(crate) async fn open(connection: &Connection, path: &str, version: &str) -> Result<Self> {
        let body = watch(connection, path, version).await?;
        let (connection, path, version) = (connection.clone(), path.to_owned(), version.to_owned());
        Ok(Self { connection, path, version, body, rest: Vec::new(), searched: 0 })
    }

    /// Lists the collection, then watches it from there: its items, and what comes after them.
    pub(crate) async fn list(connection: &Connection, path: &str) -> Result<(Vec<Value>, Self)> {
        let mut list: Value = serde_json::from_slice(&connection.get(path).await?)?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?.to_owned();
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Ok((items, Self::open(connection, path, &version).await?))
    }

    /// The next line; an error if none comes within `patience`, or if the watch ends.
    pub(crate) async fn line(&mut self, patience: Duration) -> Result<Vec<u8>> {
        self.next(patience).await?.context("the watch ended")
    }

    /// The next line; none where the watch ends.
    async fn next(&mut self, patience: Duration) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.rest.drain(..=self.searched + at).collect();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.rest.len();
            if self.searched > LINE_MAX {
                bail!("an event of the watch has more than {LINE_MAX} bytes");
            }
            let frame = tokio::time::timeout(patience, self.body.frame()).await.context("events are missing")?;
            let Some(frame) = frame else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }

    /// The object of the next event. A server ends the watches of those who read slowly: they go on where they were.
    pub(crate) async fn object(&mut self, patience: Duration) -> Result<Value> {
        loop {
            let Some(line) = self.next(patience).await? else {
                self.body = watch(&self.connection, &self.path, &self.version).await?;
                (self.rest, self.searched) = (Vec::new(), 0);
                continue;
            };
            let mut event: Value = serde_json::from_slice(&line)?;
            if event["type"] == "ERROR" {
                bail!("the watch failed: {}", event["object"]["message"]);
            }
            let version = event["object"]["metadata"]["resourceVersion"].as_str().context("an object has a version")?;
            version.clone_into(&mut self.version);
            return Ok(event["object"].take());
        }
    }
}

async fn watch(connection: &Connection, path: &str, version: &str) -> Result<Incoming> {
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{joint}watch=1&resourceVersion={version}");
    let response = connection.open(Method::GET, &path, "application/json", Bytes::new()).await?;
    if !response.status().is_success() {
        bail!("the watch {path} was answered with {}", response.status());
    }
    Ok(response.into_body())
}
