//! One tag of an HTML page, and the attributes in it that hold links.

use std::ops::Range;

/// Which attributes of which elements are links.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// A tag that is all there.
pub(super) struct Tag {
    /// The name of the element, in small letters.
    pub(super) name: String,
    /// How many bytes it has, brackets included.
    pub(super) length: usize,
    /// Where the links in it are.
    pub(super) links: Vec<Range<usize>>,
}

impl Tag {
    /// Reads the tag that `text` begins with; `None` if its end is not there yet.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut reader = Reader { text, at: 1 };
        let name = reader.word(|byte| byte.is_ascii_whitespace() || b"/>".contains(&byte));
        let name = String::from_utf8_lossy(&text[name]).to_ascii_lowercase();
        let wanted = LINKS.iter().find(|(element, _)| *element == name).map_or(&[][..], |(_, attributes)| *attributes);
        let mut links = Vec::new();
        loop {
            reader.word(|byte| !byte.is_ascii_whitespace() && byte != b'/');
            if reader.peek()? == b'>' {
                return Some(Self { name, length: reader.at + 1, links });
            }
            let (attribute, value) = reader.attribute()?;
            let is_wanted = |known: &&&str| text[attribute.clone()].eq_ignore_ascii_case(known.as_bytes());
            links.extend(value.filter(|_| wanted.iter().any(|known| is_wanted(&known))));
        }
    }
}

/// Reads a tag from left to right.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Everything up to a byte that ends it.
    fn word(&mut self, ends: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        let length = self.text[start..].iter().position(|byte| ends(*byte));
        self.at = length.map_or(self.text.len(), |length| start + length);
        start..self.at
    }

    /// An attribute, and where its value is; `None` if its end is not there yet.
    fn attribute(&mut self) -> Option<(Range<usize>, Option<Range<usize>>)> {
        let start = self.at;
        // A name may begin with an equals sign, however little sense that makes.
        self.at += 1;
        self.word(|byte| byte.is_ascii_whitespace() || b"/>=".contains(&byte));
        let name = start..self.at;
        self.word(|byte| !byte.is_ascii_whitespace());
        if self.peek()? != b'=' {
            return Some((name, None));
        }
        self.at += 1;
        self.word(|byte| !byte.is_ascii_whitespace());
        let value = match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let value = self.word(|byte| byte == quote);
                self.peek()?;
                self.at += 1;
                value
            }
            _ => self.word(|byte| byte.is_ascii_whitespace() || byte == b'>'),
        };
        Some((name, Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_every_form_of_attribute() {
        let check = |text: &str, expect: Option<(&str, usize, &[&str])>| {
            let tag = Tag::read(text.as_bytes());
            let found = tag.as_ref().map(|tag| {
                let links: Vec<&str> = tag.links.iter().map(|link| &text[link.clone()]).collect();
                (tag.name.as_str(), tag.length, links)
            });
            assert_eq!(found, expect.map(|(name, length, links)| (name, length, links.to_vec())), "{text}");
        };
        check("<a href=\"/x\">y", Some(("a", 13, &["/x"])));
        check("<A HREF = '/x>'>", Some(("a", 16, &["/x>"])));
        check("<a href=/x/ >", Some(("a", 13, &["/x/"])));
        check("<img src=/1 alt='src=/2' usemap=\"#m\"/>", Some(("img", 38, &["/1", "#m"])));
        check("<p href=/x>", Some(("p", 11, &[])));
        check("<a disabled href=\"\">", Some(("a", 20, &[""])));
        check("<br/>", Some(("br", 5, &[])));
        check("<a \"href=/x>", Some(("a", 12, &[])));
        check("<a =href=/x>", Some(("a", 12, &[])));
        for unfinished in ["<a", "<a ", "<a href", "<a href=", "<a href=\"/x", "<a href=\"/x\"", "<a href=/x"] {
            check(unfinished, None);
        }
    }
}
