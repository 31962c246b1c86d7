//! Upstream's samples of every kind as the first inputs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace::root;

/// Writes the samples among the inputs of the targets that read objects.
pub(super) fn fill(folder: &Path) -> Result<()> {
    let bytes = fs::read(root().join("crates/schema/tests/data/goldens.zst"))?;
    let text = String::from_utf8(zstd::decode_all(&bytes[..])?)?;
    for line in text.lines() {
        let mut columns = line.split('\t');
        let mut next = || columns.next().context("a sample has a name, JSON and protobuf");
        let (name, json, protobuf) = (next()?, next()?, next()?);
        for (target, content) in
            [("json", json.as_bytes().to_vec()), ("yaml", json.as_bytes().to_vec()), ("protobuf", bytes_of(protobuf)?)]
        {
            let folder = folder.join("corpus").join(target);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("sample-{name}")), content)?;
        }
    }
    Ok(())
}

fn bytes_of(hexadecimal: &str) -> Result<Vec<u8>> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_become_bytes() {
        assert_eq!(bytes_of("6b3873ff").unwrap(), b"k8s\xff");
        assert!(bytes_of("zz").is_err());
    }
}
