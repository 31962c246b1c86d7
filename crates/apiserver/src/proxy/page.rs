//! HTML pages on their way through the proxy: their links are led back while they stream by.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, GzDecoder};
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{link::Links, tag::Tag};
use crate::{Body, BoxError};

/// A longer tag is passed on as it is.
const TAG_BYTES_MAX: usize = 16 << 10;
/// Compressed pages are unpacked in pieces of this size, so that a small piece cannot become a huge one.
const PACKED_BYTES: usize = 1 << 10;
/// Elements whose content is text, whatever it looks like.
const TEXTS: [&str; 10] =
    ["iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"];

/// How a page is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
    Deflate,
}

impl Packing {
    /// Reads a `Content-Encoding`; `None` if it is one that we cannot unpack.
    pub(super) fn of(encoding: &str) -> Option<Self> {
        match encoding {
            "" | "identity" => Some(Self::None),
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// The page, unpacked and with its links led back, piece by piece as it comes.
pub(super) fn rewritten(body: Body, packing: Packing, links: Links) -> Body {
    let state = (body, Some(Unpacker::new(packing, Page::new(links))));
    let frames = stream::unfold(state, |(mut body, unpacker)| async move {
        let mut unpacker = unpacker?;
        loop {
            let frame = match body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Some((Err(error), (body, None))),
                None => return Some((unpacker.finish().map(Frame::data), (body, None))),
            };
            let Ok(data) = frame.into_data() else { continue };
            match unpacker.feed(&data) {
                Ok(out) if out.is_empty() => {}
                Ok(out) => return Some((Ok(Frame::data(out)), (body, Some(unpacker)))),
                Err(error) => return Some((Err(error), (body, None))),
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Unpacks a page into its rewriter.
enum Unpacker {
    Plain(Page),
    Gzip(GzDecoder<Page>),
    Deflate(DeflateDecoder<Page>),
}

impl Unpacker {
    fn new(packing: Packing, page: Page) -> Self {
        match packing {
            Packing::None => Self::Plain(page),
            Packing::Gzip => Self::Gzip(GzDecoder::new(page)),
            Packing::Deflate => Self::Deflate(DeflateDecoder::new(page)),
        }
    }

    fn feed(&mut self, data: &[u8]) -> Result<Bytes, BoxError> {
        for piece in data.chunks(PACKED_BYTES) {
            match self {
                Self::Plain(page) => page.write_all(piece)?,
                Self::Gzip(decoder) => decoder.write_all(piece)?,
                Self::Deflate(decoder) => decoder.write_all(piece)?,
            }
        }
        let page = match self {
            Self::Plain(page) => page,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
        };
        Ok(std::mem::take(&mut page.done).into())
    }

    fn finish(self) -> Result<Bytes, BoxError> {
        let mut page = match self {
            Self::Plain(page) => page,
            Self::Gzip(decoder) => decoder.finish()?,
            Self::Deflate(decoder) => decoder.finish()?,
        };
        page.done.append(&mut page.open);
        Ok(page.done.into())
    }
}

/// Where in a page we are.
enum Place {
    /// Between elements, or at the beginning of a tag.
    Outside,
    Comment,
    /// In an element whose content is text; what ends it.
    Text(Vec<u8>),
}

/// Leads links back in a page that is written to it.
struct Page {
    links: Links,
    place: Place,
    /// What cannot be judged before more is known.
    open: Vec<u8>,
    done: Vec<u8>,
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open.extend_from_slice(bytes);
        while self.step() {}
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn new(links: Links) -> Self {
        Self { links, place: Place::Outside, open: Vec::new(), done: Vec::new() }
    }

    /// Goes on by one thing; false if more must be known first.
    fn step(&mut self) -> bool {
        match &self.place {
            Place::Outside => self.outside(),
            Place::Comment => self.skip_to(b"-->"),
            Place::Text(end) => {
                let end = end.clone();
                self.skip_to(&end)
            }
        }
    }

    fn outside(&mut self) -> bool {
        let Some(start) = self.open.iter().position(|byte| *byte == b'<') else {
            self.pass(self.open.len());
            return false;
        };
        self.pass(start);
        if self.open.starts_with(b"<!--") {
            self.place = Place::Comment;
            return true;
        }
        match self.open.get(1) {
            None => false,
            Some(byte) if byte.is_ascii_alphabetic() => self.tag(),
            Some(_) if b"<!--".starts_with(&self.open) => false,
            Some(_) => {
                self.pass(1);
                true
            }
        }
    }

    fn tag(&mut self) -> bool {
        let Some(tag) = Tag::read(&self.open) else {
            let is_too_long = self.open.len() > TAG_BYTES_MAX;
            if is_too_long {
                self.pass(1);
            }
            return is_too_long;
        };
        let mut at = 0;
        for link in tag.links {
            self.done.extend_from_slice(&self.open[at..link.start]);
            at = link.end;
            let text = std::str::from_utf8(&self.open[link.clone()]).ok();
            match text.and_then(|text| self.links.led_back(text)) {
                Some(new) => self.done.extend_from_slice(new.as_bytes()),
                None => self.done.extend_from_slice(&self.open[link]),
            }
        }
        self.done.extend_from_slice(&self.open[at..tag.length]);
        self.open.drain(..tag.length);
        if TEXTS.contains(&tag.name.as_str()) {
            self.place = Place::Text(format!("</{}", tag.name).into_bytes());
        }
        true
    }

    /// Passes on everything up to `end` and it, too.
    fn skip_to(&mut self, end: &[u8]) -> bool {
        match self.open.windows(end.len()).position(|window| window.eq_ignore_ascii_case(end)) {
            Some(start) => {
                self.pass(start + end.len());
                self.place = Place::Outside;
                true
            }
            None => {
                self.pass((self.open.len() + 1).saturating_sub(end.len()));
                false
            }
        }
    }

    fn pass(&mut self, count: usize) {
        self.done.extend(self.open.drain(..count));
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const PAGE: &str = "<!DOCTYPE html><!-- <a href=/no> --><p>1 < 2 <a class=x href=\"/a?b&amp;c\">á</a>\
        <script src='/s.js'>document.write('<a href=\"/no\">')</script><img src=/i.png><a href=b>b</a><";
    const LED_BACK: &str = "<!DOCTYPE html><!-- <a href=/no> --><p>1 < 2 <a class=x href=\"/p/a?b&amp;c\">á</a>\
        <script src='/p/s.js'>document.write('<a href=\"/no\">')</script><img src=/p/i.png><a href=b>b</a><";

    fn links() -> Links {
        Links { prefix: "/p".into(), backend: "b".into(), asked: String::new() }
    }

    /// The page after it came in pieces of this size.
    async fn through(bytes: &[u8], packing: Packing, piece: usize) -> Result<String, BoxError> {
        let pieces: Vec<_> =
            bytes.chunks(piece).map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::copy_from_slice(piece)))).collect();
        let body = StreamBody::new(stream::iter(pieces)).boxed_unsync();
        let all = rewritten(body, packing, links()).collect().await?.to_bytes();
        Ok(String::from_utf8(all.to_vec())?)
    }

    #[tokio::test]
    async fn links_are_led_back_however_the_page_comes() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(PAGE.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(through(PAGE.as_bytes(), Packing::None, piece).await.unwrap(), LED_BACK, "{piece}");
            assert_eq!(through(&packed, Packing::Gzip, piece).await.unwrap(), LED_BACK, "{piece}");
        }
    }

    #[tokio::test]
    async fn a_page_that_is_not_packed_as_it_says_fails() {
        assert!(through(PAGE.as_bytes(), Packing::Gzip, 10).await.is_err());
    }

    #[tokio::test]
    async fn what_can_be_passed_on_does_not_wait() {
        let (mut sender, receiver) = futures::channel::mpsc::channel(1);
        let mut body = rewritten(StreamBody::new(receiver).boxed_unsync(), Packing::None, links());
        sender.try_send(Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"<p>now<a hr")))).unwrap();
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&frame[..], b"<p>now");
    }

    #[test]
    fn an_endless_tag_is_not_kept() {
        let page = format!("<a href=\"{}", "x".repeat(3 * TAG_BYTES_MAX));
        let mut rewriter = Page::new(links());
        for piece in page.as_bytes().chunks(PACKED_BYTES) {
            rewriter.write_all(piece).unwrap();
            assert!(rewriter.open.len() <= TAG_BYTES_MAX + PACKED_BYTES);
        }
        assert_eq!(rewriter.done.len() + rewriter.open.len(), page.len());
    }
}
