//! Texts that are much alike, in little room: each as what it has not in common with the first one.

use std::sync::OnceLock;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// Of the first text no more than this serves the others as a pattern.
const PATTERN_MAX: usize = 16 << 10;

/// Packs texts, and unpacks what it packed itself.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    pattern: OnceLock<Box<[u8]>>,
}

impl Packer {
    pub(crate) fn pack(&self, plain: &[u8]) -> Vec<u8> {
        let pattern = self.pattern.get_or_init(|| plain[..plain.len().min(PATTERN_MAX)].into());
        compress_prepend_size_with_dict(plain, pattern)
    }

    /// What was packed; `None` for what another packed.
    pub(crate) fn unpack(&self, packed: &[u8]) -> Option<Vec<u8>> {
        decompress_size_prepended_with_dict(packed, self.pattern.get()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were_and_those_that_are_alike_are_short() {
        let text = |number: usize| format!("number {number} of a text {}", "that is as long as an object ".repeat(20));
        let packer = Packer::default();
        assert_eq!(packer.unpack(b"never packed"), None);
        let long = "x".repeat(PATTERN_MAX * 3);
        for plain in [text(1), text(2), String::new(), "short".to_owned(), long, text(3)] {
            let packed = packer.pack(plain.as_bytes());
            assert_eq!(packer.unpack(&packed).as_deref(), Some(plain.as_bytes()));
        }
        assert!(packer.pack(text(4).as_bytes()).len() < 40);
    }
}
