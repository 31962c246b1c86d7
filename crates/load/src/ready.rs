//! Waiting for a server that starts.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::connection::Target;
use crate::measure::now_s;

/// How often it asks.
const PAUSE: Duration = Duration::from_millis(1);
/// How long it asks.
const PATIENCE: Duration = Duration::from_secs(180);

/// The moment from which the server is ready.
pub(crate) async fn run(target: &Target) -> Result<Value> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if is_ready(target).await.unwrap_or(false) {
            return Ok(json!({"at_s": now_s()}));
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("the server is not ready after {PATIENCE:?}")
}

async fn is_ready(target: &Target) -> Result<bool> {
    let connection = target.connect().await?;
    loop {
        let (status, _) = connection.exchange(Method::GET, "/readyz", "application/json", Bytes::new()).await?;
        if status == StatusCode::OK {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
