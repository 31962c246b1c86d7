//! A client that speaks SPDY: one stream for each of its inputs and outputs, as a [`Remote`].

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, watch};

use super::options::Options;
use super::remote::{Channel, Output, QUEUE_MAX, Remote, Said};
use super::spdy::{Connection, Opened, StreamOutput};
use crate::sandbox::Size;

/// The versions that are spoken, best first: what they name is how the outcome is told and whether terminals change size.
pub(super) const VERSIONS: [(&str, u8); 4] =
    [("v4.channel.k8s.io", 4), ("v3.channel.k8s.io", 3), ("v2.channel.k8s.io", 2), ("channel.k8s.io", 1)];

/// How long a client may take to open its streams.
const OPENING_TIME_MAX: Duration = Duration::from_secs(30);
/// The longest description of a terminal's size.
const SIZE_BYTES_MAX: usize = 1 << 10;

/// The streams of a client, once all are open.
#[derive(Default)]
struct Streams {
    error: Option<Opened>,
    stdin: Option<Opened>,
    stdout: Option<Opened>,
    stderr: Option<Opened>,
    resize: Option<Opened>,
}

impl Streams {
    fn take(&mut self, opened: Opened) {
        let place = match opened.header("streamtype") {
            "error" => &mut self.error,
            "stdin" => &mut self.stdin,
            "stdout" => &mut self.stdout,
            "stderr" => &mut self.stderr,
            "resize" => &mut self.resize,
            _ => return,
        };
        *place = Some(opened);
    }

    fn are_all(&self, options: &Options, version: u8) -> bool {
        let has = |wanted: bool, stream: &Option<Opened>| !wanted || stream.is_some();
        self.error.is_some()
            && has(options.stdin, &self.stdin)
            && has(options.stdout, &self.stdout)
            && has(options.stderr, &self.stderr)
            && has(options.tty && version >= 3, &self.resize)
    }
}

/// Waits for the streams that the client must open; none if it does not.
pub(super) async fn remote(mut connection: Connection, options: &Options, version: u8) -> Option<Remote> {
    let mut streams = Streams::default();
    let opening = async {
        while !streams.are_all(options, version) {
            streams.take(connection.opened.recv().await?);
        }
        Some(())
    };
    if tokio::time::timeout(OPENING_TIME_MAX, opening).await.ok().flatten().is_none() {
        connection.close();
        return None;
    }
    let gone = connection.gone.clone();
    let nothing = || mpsc::channel(1).1;
    let input = streams.stdin.map_or_else(nothing, |stdin| stdin.input);
    let (resized, sizes) = watch::channel(None);
    if let Some(resize) = streams.resize {
        tokio::spawn(follow_size(resize.input, resized));
    }
    let (output, said) = mpsc::channel(QUEUE_MAX);
    let outputs = Outputs {
        error: streams.error?.output,
        stdout: streams.stdout.map(|stdout| stdout.output),
        stderr: streams.stderr.map(|stderr| stderr.output),
    };
    tokio::spawn(outputs.carry(said, connection, version));
    Some(Remote { input, sizes, output: Output(output), gone })
}

async fn follow_size(mut input: mpsc::Receiver<Bytes>, resized: watch::Sender<Option<Size>>) {
    let mut buffer = BytesMut::new();
    while let Some(bytes) = input.recv().await {
        buffer.extend_from_slice(&bytes);
        let mut sizes = serde_json::Deserializer::from_slice(&buffer).into_iter();
        let last = sizes.by_ref().map_while(Result::ok).last();
        let read = sizes.byte_offset();
        if last.is_some() {
            resized.send_replace(last);
        }
        let _ = buffer.split_to(read.min(buffer.len()));
        if buffer.len() > SIZE_BYTES_MAX {
            return;
        }
    }
}

/// The streams to the client.
struct Outputs {
    error: StreamOutput,
    stdout: Option<StreamOutput>,
    stderr: Option<StreamOutput>,
}

impl Outputs {
    async fn carry(self, mut said: mpsc::Receiver<Said>, connection: Connection, version: u8) {
        while let Some(said) = said.recv().await {
            match said {
                Said::Output(Channel::Stdout, bytes) => send(self.stdout.as_ref(), bytes).await,
                Said::Output(Channel::Stderr, bytes) => send(self.stderr.as_ref(), bytes).await,
                Said::Outcome(outcome) => {
                    let bytes = outcome.bytes(version >= 4).unwrap_or_default();
                    send(Some(&self.error), bytes.into()).await;
                }
            }
        }
        for output in [self.stdout, self.stderr, Some(self.error)].into_iter().flatten() {
            output.end().await;
        }
        connection.close();
        connection.gone.cancelled().await;
    }
}

async fn send(output: Option<&StreamOutput>, bytes: Bytes) {
    if let Some(output) = output.filter(|_| !bytes.is_empty()) {
        output.send(bytes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sizes_are_read_however_they_arrive() {
        let (sender, input) = mpsc::channel(8);
        let (resized, mut sizes) = watch::channel(None);
        tokio::spawn(follow_size(input, resized));
        for part in ["{\"Width\":80,\"Hei", "ght\":24}\n{\"Width\":1,\"Height\":2}", "\n{\"Width\":3,"] {
            sender.send(Bytes::from_static(part.as_bytes())).await.unwrap();
        }
        let found = sizes.wait_for(|size| *size == Some(Size { width: 1, height: 2 })).await;
        assert!(found.is_ok());
    }
}
