//! The frames of SPDY/3.1, as bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The longest frame that is taken; those of kubectl have up to 32 KiB.
const FRAME_BYTES_MAX: usize = 1 << 20;
const FRAME_HEADER_BYTES: usize = 8;
const CONTROL: u8 = 0x80;
const VERSION: u16 = 3;
const FIN: u8 = 1;
/// Stream numbers have 31 bits.
const STREAM_MASK: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// Why a frame cannot be read; the connection is of no use then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::stream) enum FrameError {
    #[error("a frame of version {0} of SPDY, not 3")]
    Version(u16),
    #[error("a frame of {0} bytes, more than {FRAME_BYTES_MAX}")]
    TooLarge(usize),
    #[error("a frame that ends before its content")]
    Short,
    #[error("headers that cannot be read")]
    Headers,
    #[error("headers that are too large")]
    HeadersTooLarge,
}

/// A frame; headers are still packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::stream) enum Frame {
    /// A new stream of the other side.
    Open { stream: u32, ends: bool, headers: Bytes },
    /// The other side takes a stream.
    Accept { stream: u32, headers: Bytes },
    /// A stream is broken off.
    Reset { stream: u32, status: u32 },
    /// A question that is answered with itself.
    Ping(u32),
    /// No new streams are taken.
    GoAway { last: u32 },
    /// A part of a stream.
    Data { stream: u32, ends: bool, content: Bytes },
    /// One that nobody here needs.
    Other,
}

impl Frame {
    /// Takes the first frame off `buffer`, if it is complete.
    pub(in crate::stream) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, FrameError> {
        let Some(header) = buffer.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
        let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let flags = header[4];
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge(length));
        }
        let control = header[0] & CONTROL != 0;
        let version = (first >> 16) as u16 & !(u16::from(CONTROL) << 8);
        if control && version != VERSION {
            return Err(FrameError::Version(version));
        }
        if buffer.len() < FRAME_HEADER_BYTES + length {
            buffer.reserve(FRAME_HEADER_BYTES + length - buffer.len());
            return Ok(None);
        }
        buffer.advance(FRAME_HEADER_BYTES);
        let content = buffer.split_to(length).freeze();
        let ends = flags & FIN != 0;
        if control {
            return read_control(first as u16, ends, content).map(Some);
        }
        Ok(Some(Self::Data { stream: first & STREAM_MASK, ends, content }))
    }

    /// Appends the frame to `buffer`.
    pub(in crate::stream) fn put(&self, buffer: &mut BytesMut) {
        let mut content = BytesMut::new();
        let (kind, ends) = match self {
            Self::Data { stream, ends, content } => {
                buffer.put_u32(*stream & STREAM_MASK);
                put_length(buffer, *ends, content.len());
                return buffer.extend_from_slice(content);
            }
            Self::Open { stream, ends, headers } => {
                content.put_u32(*stream & STREAM_MASK);
                // No other stream, and the highest priority.
                content.put_slice(&[0; 6]);
                content.extend_from_slice(headers);
                (SYN_STREAM, *ends)
            }
            Self::Accept { stream, headers } => {
                content.put_u32(*stream & STREAM_MASK);
                content.extend_from_slice(headers);
                (SYN_REPLY, false)
            }
            Self::Reset { stream, status } => {
                content.put_u32(*stream & STREAM_MASK);
                content.put_u32(*status);
                (RST_STREAM, false)
            }
            Self::Ping(id) => {
                content.put_u32(*id);
                (PING, false)
            }
            Self::GoAway { last } => {
                content.put_u32(*last);
                content.put_u32(0);
                (GOAWAY, false)
            }
            Self::Other => return,
        };
        buffer.put_u16(u16::from(CONTROL) << 8 | VERSION);
        buffer.put_u16(kind);
        put_length(buffer, ends, content.len());
        buffer.extend_from_slice(&content);
    }
}

fn put_length(buffer: &mut BytesMut, ends: bool, length: usize) {
    buffer.put_u8(if ends { FIN } else { 0 });
    buffer.put_uint(length as u64, 3);
}

fn read_control(kind: u16, ends: bool, mut content: Bytes) -> Result<Frame, FrameError> {
    let mut number = || -> Result<u32, FrameError> { content.try_get_u32().map_err(|_| FrameError::Short) };
    Ok(match kind {
        SYN_STREAM => {
            let stream = number()? & STREAM_MASK;
            number()?;
            if content.len() < 2 {
                return Err(FrameError::Short);
            }
            Frame::Open { stream, ends, headers: content.slice(2..) }
        }
        SYN_REPLY => Frame::Accept { stream: number()? & STREAM_MASK, headers: content },
        RST_STREAM => Frame::Reset { stream: number()? & STREAM_MASK, status: number()? },
        PING => Frame::Ping(number()?),
        GOAWAY => Frame::GoAway { last: number()? & STREAM_MASK },
        _ => Frame::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        vec![
            Frame::Open { stream: 1, ends: false, headers: bytes("packed") },
            Frame::Accept { stream: 1, headers: bytes("") },
            Frame::Data { stream: 1, ends: true, content: bytes("hello") },
            Frame::Reset { stream: 3, status: 5 },
            Frame::Ping(7),
            Frame::GoAway { last: 3 },
        ]
    }

    #[test]
    fn what_is_written_is_read_back_however_it_arrives() {
        let mut written = BytesMut::new();
        frames().iter().for_each(|frame| frame.put(&mut written));
        let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
        for byte in &written {
            buffer.put_u8(*byte);
            read.extend(Frame::take(&mut buffer).unwrap());
        }
        assert_eq!(read, frames());
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_data_frame_has_these_bytes() {
        let mut written = BytesMut::new();
        Frame::Data { stream: 5, ends: true, content: Bytes::from_static(b"ab") }.put(&mut written);
        assert_eq!(&written[..], b"\0\0\0\x05\x01\0\0\x02ab");
        written.clear();
        Frame::Ping(2).put(&mut written);
        assert_eq!(&written[..], b"\x80\x03\0\x06\0\0\0\x04\0\0\0\x02");
    }

    #[test]
    fn frames_that_are_too_large_or_broken_are_refused() {
        let check = |bytes: &[u8], expect: FrameError| assert_eq!(Frame::take(&mut BytesMut::from(bytes)), Err(expect));
        check(b"\0\0\0\x01\0\xff\xff\xff", FrameError::TooLarge(0xff_ffff));
        check(b"\x80\x02\0\x06\0\0\0\x04\0\0\0\x02", FrameError::Version(2));
        check(b"\x80\x03\0\x06\0\0\0\x02\0\0", FrameError::Short);
        check(b"\x80\x03\0\x01\0\0\0\x08\0\0\0\x01\0\0\0\0", FrameError::Short);
        assert_eq!(Frame::take(&mut BytesMut::from(&b"\x80\x03\0\x04\0\0\0\0"[..])), Ok(Some(Frame::Other)));
    }
}
