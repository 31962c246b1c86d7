//! The query part of a request.

/// The parameters of a request, in order, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=1&b=2`.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true), decode(value, true))
        });
        Self(decoded.collect())
    }

    /// The first value of `key`; an empty one counts as absent.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// Every value of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// Whether `key` is set to anything but `false` or `0`, as Kubernetes reads switches.
    pub fn flag(&self, key: &str) -> bool {
        self.all(key).next().is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }
}

/// Undoes percent-encoding; in queries `+` is a space.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) if plus_is_space => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc+in+%28d%29&watch&dryRun=All&dryRun=x&limit="));
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.flag("watch"));
        assert!(!query.flag("absent"));
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "x"]);
        assert_eq!(query.get("limit"), None);
        assert_eq!(decode("100%", false), "100%");
        assert_eq!(decode("a%zz+", false), "a%zz+");
    }

    #[test]
    fn switches_are_off_when_false() {
        assert!(!Query::parse(Some("watch=false")).flag("watch"));
        assert!(!Query::parse(Some("watch=0")).flag("watch"));
        assert!(Query::parse(Some("watch=1")).flag("watch"));
    }
}
