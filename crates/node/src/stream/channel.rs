//! The channels of a stream over WebSocket: each message begins with the number of its channel.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio_tungstenite::tungstenite::Message;

use super::remote::{Channel, Said};
use crate::sandbox::Size;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// In version 5: the channel named by the next byte has ended.
const CLOSE: u8 = 255;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protocol {
    /// As clients name it; empty for those that name none.
    pub(super) name: &'static str,
    base64: bool,
    version: u8,
}

/// All versions.
pub(super) const PROTOCOLS: [Protocol; 6] = [
    Protocol { name: "v5.channel.k8s.io", base64: false, version: 5 },
    Protocol { name: "v4.channel.k8s.io", base64: false, version: 4 },
    Protocol { name: "v4.base64.channel.k8s.io", base64: true, version: 4 },
    Protocol { name: "channel.k8s.io", base64: false, version: 1 },
    Protocol { name: "base64.channel.k8s.io", base64: true, version: 1 },
    Protocol { name: "", base64: false, version: 1 },
];

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// It typed something.
    Input(Bytes),
    /// It will type nothing more.
    InputEnds,
    /// Its terminal has another size.
    Resized(Size),
    /// Nothing of interest.
    Nothing,
}

impl Protocol {
    /// Whether channels can end before the connection does.
    pub(super) fn closes(&self) -> bool {
        self.version >= 5
    }

    /// Reads the content of a message.
    pub(super) fn read(&self, message: Bytes) -> Heard {
        let Some(&first) = message.first() else { return Heard::Nothing };
        if self.closes() && first == CLOSE {
            return if message[1..] == [STDIN] { Heard::InputEnds } else { Heard::Nothing };
        }
        let number = if self.base64 { first.wrapping_sub(b'0') } else { first };
        let content = message.slice(1..);
        let content =
            if self.base64 { STANDARD.decode(&content).map(Bytes::from).unwrap_or_default() } else { content };
        match number {
            STDIN if !content.is_empty() => Heard::Input(content),
            RESIZE => serde_json::from_slice(&content).map_or(Heard::Nothing, Heard::Resized),
            _ => Heard::Nothing,
        }
    }

    /// The message for something that is said; an outcome may need no words.
    pub(super) fn write(&self, said: &Said) -> Option<Message> {
        Some(match said {
            Said::Output(channel, bytes) => {
                let number = match channel {
                    Channel::Stdout => STDOUT,
                    Channel::Stderr => STDERR,
                };
                self.message(number, bytes)
            }
            Said::Outcome(outcome) => self.message(ERROR, &outcome.bytes(self.version >= 4)?),
        })
    }

    fn message(&self, number: u8, content: &[u8]) -> Message {
        if self.base64 {
            let mut text = char::from(b'0' + number).to_string();
            STANDARD.encode_string(content, &mut text);
            return Message::text(text);
        }
        let mut bytes = Vec::with_capacity(content.len() + 1);
        bytes.push(number);
        bytes.extend_from_slice(content);
        Message::binary(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::outcome::Outcome;

    fn protocol(name: &str) -> Protocol {
        *PROTOCOLS.iter().find(|protocol| protocol.name == name).unwrap()
    }

    #[test]
    fn messages_are_read() {
        let check = |name: &str, message: &'static [u8], expect: Heard| {
            assert_eq!(protocol(name).read(Bytes::from_static(message)), expect, "{name} {message:?}");
        };
        let input = |text: &'static str| Heard::Input(Bytes::from_static(text.as_bytes()));
        check("v5.channel.k8s.io", b"\0hi", input("hi"));
        check("v5.channel.k8s.io", b"\xff\0", Heard::InputEnds);
        check("v5.channel.k8s.io", b"\xff\x01", Heard::Nothing);
        check("v5.channel.k8s.io", b"\xff", Heard::Nothing);
        check("v5.channel.k8s.io", b"", Heard::Nothing);
        check("v4.channel.k8s.io", b"\xff\0", Heard::Nothing);
        check("v5.channel.k8s.io", b"\x04{\"Width\":80,\"Height\":24}", Heard::Resized(Size { width: 80, height: 24 }));
        check("v5.channel.k8s.io", b"\x04{\"Width\":", Heard::Nothing);
        check("base64.channel.k8s.io", b"0aGk=", input("hi"));
        check("base64.channel.k8s.io", b"0!", Heard::Nothing);
    }

    #[test]
    fn messages_are_written() {
        let output = Said::Output(Channel::Stderr, Bytes::from_static(b"hi"));
        assert_eq!(protocol("v4.channel.k8s.io").write(&output), Some(Message::binary(&b"\x02hi"[..])));
        assert_eq!(protocol("v4.base64.channel.k8s.io").write(&output), Some(Message::text("2aGk=")));
        let done = Said::Outcome(Outcome::Exited(0));
        assert_eq!(protocol("channel.k8s.io").write(&done), None);
        let message = protocol("v5.channel.k8s.io").write(&done).unwrap().into_data();
        assert!(message.starts_with(b"\x03{") && message.ends_with(b"\"status\":\"Success\"}"), "{message:?}");
    }
}
