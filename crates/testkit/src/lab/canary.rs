//! What Secrets hold, looked for wherever it must not be.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

/// Shorter values are also found by chance.
const BYTES_MIN: usize = 8;
/// Longer values are looked for by their beginning.
const BYTES_MAX: usize = 256;
/// Where Secrets are in the store.
pub(crate) const SECRETS: &str = "/core/secrets/";
/// Keys under which there is nothing to hide.
const SHOWN: [&str; 9] =
    ["user", "username", "host", "hostname", "port", "database", "dbname", "namespace", "ssh-publickey"];

/// What Secrets hold, in all the forms that it may be found in.
#[derive(Default)]
pub(crate) struct Canaries {
    known: BTreeMap<Vec<u8>, Canary>,
    /// The keys under which there is nothing to hide, as the author says.
    shown: BTreeSet<String>,
}

/// One value of a Secret.
#[derive(Debug)]
pub(crate) struct Canary {
    /// Where it is: the key of the Secret, and the key in it.
    whose: String,
    /// As it is, and as JSON has it.
    plain: [String; 2],
    forms: Vec<String>,
}

impl Canaries {
    pub(crate) fn new(shown: BTreeSet<String>) -> Self {
        Self { shown, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Learns what the Secret `key` holds; tells whether something of it is new.
    pub(crate) fn learn(&mut self, key: &str, secret: &Value) -> bool {
        let before = self.known.len();
        for (name, value) in secret["data"].as_object().into_iter().flatten() {
            let Some(bytes) = value.as_str().and_then(|text| STANDARD.decode(text).ok()) else { continue };
            if bytes.len() >= BYTES_MIN && !self.is_shown(name) && !self.known.contains_key(&bytes) {
                let canary = Canary::of(format!("{name} of {key}"), &bytes[..bytes.len().min(BYTES_MAX)]);
                self.known.insert(bytes, canary);
            }
        }
        self.known.len() > before
    }

    fn is_shown(&self, name: &str) -> bool {
        let is_public = [".crt", ".pub", ".cert"].iter().any(|ending| name.ends_with(ending));
        is_public || SHOWN.contains(&name) || self.shown.contains(name)
    }

    /// What of it is in `text`, and the user did not write for all to see, as `open`.
    pub(crate) fn find(&self, text: &str, open: &str) -> Option<&Canary> {
        let is_in = |canary: &&Canary| canary.forms.iter().any(|form| text.contains(form.as_str()));
        self.known.values().filter(is_in).find(|canary| !canary.plain.iter().any(|plain| open.contains(plain)))
    }
}

impl Canary {
    fn of(whose: String, bytes: &[u8]) -> Self {
        let plain = String::from_utf8_lossy(bytes).into_owned();
        let quoted = Value::from(plain.as_str()).to_string();
        let plain = [plain, quoted[1..quoted.len() - 1].to_owned()];
        let encoded: String = form_urlencoded::byte_serialize(bytes).collect();
        let mut forms = [plain.to_vec(), vec![encoded.replace('+', "%20"), encoded]].concat();
        forms.extend([hex::encode(bytes), hex::encode_upper(bytes)]);
        forms.extend((0..3).flat_map(|before| [inside(&STANDARD, bytes, before), inside(&URL_SAFE, bytes, before)]));
        forms.sort();
        forms.dedup();
        Self { whose, plain, forms }
    }

    /// Whose value it is, for reports.
    pub(crate) fn whose(&self) -> &str {
        &self.whose
    }

    /// The text around the place where it was found, without it.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), "***"))
    }
}

/// What base64 makes of `bytes` behind `before` others, as far as those do not matter.
fn inside(engine: &impl Engine, bytes: &[u8], before: usize) -> String {
    let padded = [vec![0; before], bytes.to_vec()].concat();
    let text = engine.encode(&padded);
    let (first, last) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    text[first..last].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_found_in_every_form_and_their_neighbours_are_not() {
        let mut canaries = Canaries::new(BTreeSet::from(["motto".to_owned()]));
        let value = "s3cret/wörd? &\"";
        let data = json!({"password": STANDARD.encode(value), "username": STANDARD.encode("administrator"),
                          "motto": STANDARD.encode("all for one"), "pin": STANDARD.encode("1234")});
        canaries.learn("/core/secrets/default/a", &json!({"data": data}));
        let forms = [
            value.to_owned(),
            json!({"note": value}).to_string(),
            STANDARD.encode(value),
            STANDARD.encode(format!("administrator:{value}")),
            STANDARD.encode(format!("root:{value}!")),
            hex::encode(value),
            form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        ];
        for form in forms {
            let found = canaries.find(&format!("error: {form}."), "");
            assert_eq!(found.map(Canary::whose), Some("password of /core/secrets/default/a"), "{form}");
        }
        for text in ["administrator", "1234", "all for one", "s3cret"] {
            assert!(canaries.find(text, "").is_none(), "{text}");
        }
        let written = json!({"spec": {"text": value}}).to_string();
        assert!(canaries.find(value, &written).is_none(), "the user has written it for all to see");
        let masked = canaries.find(value, "").expect("it is there").mask(&format!("login {value} failed"));
        assert_eq!(masked, "login *** failed");
    }
}
