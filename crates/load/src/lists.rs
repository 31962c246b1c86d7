//! Reading a collection, whole and in pages.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bodies::Kind;
use crate::connection::{Connection, Target};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What is listed.
    #[arg(long, value_enum, default_value = "widget")]
    kind: Kind,
    /// How many objects there are.
    #[arg(long)]
    objects: usize,
    /// How often it is done.
    #[arg(long, default_value_t = 3)]
    times: usize,
    /// How long a page is.
    #[arg(long, default_value_t = 500)]
    page: usize,
}

pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let connection = target.connect().await?;
    let path = options.kind.path();
    let (mut whole, mut paged, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.times {
        let begin = Instant::now();
        let body = connection.gather(&format!("{path}?resourceVersion=0")).await?;
        whole.push(begin.elapsed());
        // To make one piece of it is not the server's time.
        let body = body.to_bytes();
        bytes = body.len();
        let found = count(&body)?;
        ensure!(found == options.objects, "{found} objects instead of {}", options.objects);
        let begin = Instant::now();
        let pages = pages(&connection, path, options.page).await?;
        paged.push(begin.elapsed());
        let found = pages.iter().map(count).sum::<Result<usize>>()?;
        ensure!(found == options.objects, "{found} objects in pages instead of {}", options.objects);
    }
    Ok(json!({"whole_s": median(whole), "paged_s": median(paged), "bytes": bytes}))
}

async fn pages(connection: &Connection, path: &str, page: usize) -> Result<Vec<Bytes>> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let body = connection.get(&format!("{path}?limit={page}&continue={token}")).await?;
        token = continuation(&body)?;
        pages.push(body);
        if token.is_empty() {
            return Ok(pages);
        }
    }
}

/// The token of the next page. It is looked for as text, because reading the objects is not the server's time.
fn continuation(body: &[u8]) -> Result<String> {
    const KEY: &str = "\"continue\":\"";
    let text = std::str::from_utf8(body)?;
    // Either server writes the metadata of the list before or after the items.
    let ends = [&text[..text.len().min(4096)], &text[text.floor_char_boundary(text.len().saturating_sub(4096))..]];
    for end in ends {
        if let Some((_, rest)) = end.split_once(KEY) {
            let token = rest.split('"').next().context("the token of the next page does not end")?;
            return Ok(token.replace("\\u003d", "=").replace('=', "%3D"));
        }
    }
    Ok(String::new())
}

fn count(body: &Bytes) -> Result<usize> {
    let list: Value = serde_json::from_slice(body)?;
    Ok(list["items"].as_array().context("not a list")?.len())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}
