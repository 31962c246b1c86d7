//! An operator on `kube::runtime::Controller` that moves to Windlass step by step: `cargo run --example from-kube step1`.
//! `docs/from-kube.md` tells the story.

mod before;
mod kinds;
mod step1;
mod step2;
mod step3;

use kube::Client;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopping.cancel();
        }
    });
    match std::env::args().nth(1).as_deref() {
        Some("before") => before::run(client, stop).await?,
        Some("step1") => step1::manager(client).run(stop).await?,
        Some("step2") => step2::manager(client).run(stop).await?,
        Some("step3") => step3::manager(client).run(stop).await?,
        _ => return Err("say which: before, step1, step2 or step3".into()),
    }
    Ok(())
}
