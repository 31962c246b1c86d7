//! Attaches a client to the program of a container.

use std::sync::Arc;

use super::options::Options;
use super::outcome::Outcome;
use super::remote::{Channel, Remote};
use crate::log::Stream;
use crate::pod::Console;

/// Shows a client what the program writes and types what the client types, until one of them goes.
pub(super) async fn run(console: Arc<Console>, options: Options, remote: Remote) {
    let output = remote.output.clone();
    let outcome = session(&console, &options, remote).await;
    output.finish(outcome).await;
}

async fn session(console: &Console, options: &Options, remote: Remote) -> Outcome {
    let Some(mut pieces) = console.view() else {
        return Outcome::Failed("the container has ended, or too many clients are attached to it".to_owned());
    };
    let Remote { mut input, mut sizes, gone, output } = remote;
    let show = async {
        while let Some((stream, bytes)) = pieces.recv().await {
            let (wanted, channel) = match stream {
                Stream::Stdout => (options.stdout, Channel::Stdout),
                Stream::Stderr => (options.stderr, Channel::Stderr),
            };
            if wanted {
                output.send(channel, bytes).await;
            }
        }
    };
    let resize = async {
        while sizes.changed().await.is_ok() {
            let size = *sizes.borrow_and_update();
            size.into_iter().for_each(|size| console.resize(size));
        }
        std::future::pending::<()>().await;
    };
    let typing = async {
        while let Some(bytes) = input.recv().await {
            if console.type_in(&bytes).await.is_err() {
                break;
            }
        }
        if options.stdin {
            console.typed().await;
        }
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        () = show => Outcome::Exited(0),
        () = gone.cancelled() => Outcome::Failed("the client is gone".to_owned()),
        () = resize => unreachable!("it never ends"),
        () = typing => unreachable!("it never ends"),
    };
    if options.stdin {
        console.typed().await;
    }
    outcome
}
