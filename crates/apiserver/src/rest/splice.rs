//! Stored objects as they are sent, without reading them: only the version is put in.

use windlass_store::Revision;

/// Writes the stored object with its version to `out`; `false` (and nothing written) if its metadata is not found.
pub(crate) fn with_version(stored: &[u8], revision: Revision, out: &mut Vec<u8>) -> bool {
    let Some(inside) = inside_metadata(stored) else { return false };
    let (before, after) = stored.split_at(inside);
    out.extend_from_slice(before);
    put_version(revision, after, out);
    true
}

/// Writes the stored object with `members` (JSON) in its metadata to `out`; `false` if its metadata is not found.
pub(crate) fn into_metadata(stored: &[u8], members: &str, out: &mut Vec<u8>) -> bool {
    let Some(inside) = inside_metadata(stored) else { return false };
    let (before, after) = stored.split_at(inside);
    out.reserve(stored.len() + members.len() + 1);
    out.extend_from_slice(before);
    out.extend_from_slice(members.as_bytes());
    if after.first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(after);
    true
}

/// As [`with_version`], with `opening` in the place of the first `cut` bytes.
pub(crate) fn opened_with_version(
    stored: &[u8],
    (cut, opening): (usize, &[u8]),
    revision: Revision,
    out: &mut Vec<u8>,
) -> bool {
    let Some(inside) = inside_metadata(stored).filter(|inside| *inside >= cut) else { return false };
    let (before, after) = stored.split_at(inside);
    out.extend_from_slice(opening);
    out.extend_from_slice(&before[cut..]);
    put_version(revision, after, out);
    true
}

fn put_version(revision: Revision, after: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"resourceVersion\":\"");
    out.extend_from_slice(revision.to_string().as_bytes());
    out.push(b'"');
    if after.first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(after);
}

/// The position after the brace that opens the metadata of a compact JSON object.
fn inside_metadata(stored: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"\"metadata\":{";
    let (mut depth, mut position) = (0_usize, 0);
    while let Some(byte) = stored.get(position) {
        match byte {
            b'"' if depth == 1 && stored[position..].starts_with(KEY) => return Some(position + KEY.len()),
            b'"' => position = end_of_text(stored, position)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        position += 1;
    }
    None
}

/// The position of the quote that closes the text which opens at `start`.
fn end_of_text(stored: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    loop {
        match stored.get(position)? {
            b'"' => return Some(position),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(object: &Value) {
        let mut out = Vec::new();
        assert!(with_version(object.to_string().as_bytes(), Revision(7), &mut out), "{object}");
        let mut expect = object.clone();
        expect["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expect);
    }

    #[test]
    fn the_version_goes_into_the_metadata_of_the_object_itself() {
        check(&json!({"metadata": {}}));
        check(&json!({"apiVersion": "v1", "metadata": {"name": "a"}}));
        check(&json!({"data": {"metadata": {"name": "no"}, "x": "\"metadata\":{\\"}, "metadata": {"name": "a"}}));
        check(&json!({"a": ["metadata", {"metadata": {}}], "metadata": {"labels": {"metadata": "x"}}}));
    }

    #[test]
    fn what_has_no_metadata_is_left_alone() {
        for text in ["{}", "[]", "{\"a\":\"", "{\"a\":{\"metadata\":{}}}", "}"] {
            let mut out = Vec::new();
            assert!(!with_version(text.as_bytes(), Revision(7), &mut out), "{text}");
            assert!(out.is_empty());
        }
    }
}
