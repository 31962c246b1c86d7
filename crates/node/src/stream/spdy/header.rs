//! The headers of streams: pairs of texts, compressed with what went before them on the connection.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::dictionary::dictionary;
use super::frame::FrameError;

/// The longest headers of one stream, unpacked. Those of kubectl have some hundred bytes.
const HEADERS_BYTES_MAX: usize = 16 << 10;
/// How many headers a stream may have.
const HEADERS_MAX: usize = 64;
/// The length of zlib's own header.
const ZLIB_HEADER_BYTES: usize = 2;

/// Name and value of each header; names are in lower case.
pub(in crate::stream) type Headers = Vec<(String, String)>;

/// Reads headers.
pub(super) struct Unpacker(Decompress);

impl Unpacker {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Reads the headers of one frame. After an error the connection is of no use.
    pub(super) fn read(&mut self, packed: &[u8]) -> Result<Headers, FrameError> {
        parse(&self.unpack(packed)?)
    }

    fn unpack(&mut self, mut packed: &[u8]) -> Result<Vec<u8>, FrameError> {
        let mut text = vec![0; HEADERS_BYTES_MAX];
        let mut length = 0;
        loop {
            let (read, written) = (self.0.total_in(), self.0.total_out());
            let result = self.0.decompress(packed, &mut text[length..], FlushDecompress::Sync);
            let read = usize::try_from(self.0.total_in() - read).unwrap_or(usize::MAX);
            length += usize::try_from(self.0.total_out() - written).unwrap_or_default();
            packed = packed.get(read..).ok_or(FrameError::Headers)?;
            match result {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0.set_dictionary(&dictionary()).map_err(|_| FrameError::Headers)?;
                }
                Err(_) => return Err(FrameError::Headers),
                Ok(_) if length == text.len() => return Err(FrameError::HeadersTooLarge),
                Ok(_) if packed.is_empty() => break,
                Ok(_) if read == 0 => return Err(FrameError::Headers),
                Ok(_) => {}
            }
        }
        text.truncate(length);
        Ok(text)
    }
}

/// Writes headers.
pub(super) struct Packer(Compress);

impl Packer {
    pub(super) fn new() -> Self {
        let mut compress = Compress::new(Compression::fast(), true);
        let set = compress.set_dictionary(&dictionary());
        debug_assert!(set.is_ok(), "a new stream takes a dictionary");
        Self(compress)
    }

    /// Writes the headers of one frame.
    pub(super) fn write(&mut self, headers: &Headers) -> Vec<u8> {
        let mut text = (headers.len() as u32).to_be_bytes().to_vec();
        for part in headers.iter().flat_map(|(name, value)| [name, value]) {
            text.extend_from_slice(&(part.len() as u32).to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        // What cannot be compressed grows by a few bytes for every block.
        let mut packed = Vec::with_capacity(text.len() * 2 + 64 + ZLIB_HEADER_BYTES);
        let _ = self.0.compress_vec(&text, &mut packed, FlushCompress::Sync);
        packed
    }
}

/// Reads what was unpacked.
fn parse(text: &[u8]) -> Result<Headers, FrameError> {
    let mut rest = text;
    let count = take_number(&mut rest)?;
    if count > HEADERS_MAX {
        return Err(FrameError::HeadersTooLarge);
    }
    let mut headers = Headers::with_capacity(count);
    for _ in 0..count {
        let name = take_text(&mut rest)?.to_ascii_lowercase();
        headers.push((name, take_text(&mut rest)?));
    }
    Ok(headers)
}

fn take_number(rest: &mut &[u8]) -> Result<usize, FrameError> {
    let (number, after) = rest.split_first_chunk().ok_or(FrameError::Headers)?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*number)).map_err(|_| FrameError::Headers)
}

fn take_text(rest: &mut &[u8]) -> Result<String, FrameError> {
    let length = take_number(rest)?;
    let (text, after) = rest.split_at_checked(length).ok_or(FrameError::Headers)?;
    *rest = after;
    String::from_utf8(text.to_vec()).map_err(|_| FrameError::Headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_of_one_connection_are_read_in_order() {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        for given in
            [headers(&[("streamtype", "stdin"), ("port", "80")]), headers(&[]), headers(&[("streamtype", "error")])]
        {
            let packed = packer.write(&given);
            assert_eq!(unpacker.read(&packed).unwrap(), given);
        }
    }

    #[test]
    fn what_is_not_headers_is_refused() {
        assert!(Unpacker::new().read(b"nonsense").is_err());
        assert!(Unpacker::new().read(b"").is_err());
        let cut = &Packer::new().write(&headers(&[("streamtype", "stdin")]))[..12];
        assert!(Unpacker::new().read(cut).is_err());
    }

    #[test]
    fn headers_that_unpack_to_more_than_the_limit_are_refused() {
        let packed = Packer::new().write(&headers(&[("x", &"y".repeat(HEADERS_BYTES_MAX))]));
        assert!(packed.len() < 1024, "a small frame");
        assert_eq!(Unpacker::new().read(&packed), Err(FrameError::HeadersTooLarge));
    }
}
