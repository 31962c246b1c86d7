//! Archives as they are, byte by byte.

use super::ground::Ground;

/// The size of the blocks that archives are made of, and where a header has its sum and its size.
const BLOCK: usize = 512;
const SUM: std::ops::Range<usize> = 148..156;
const SIZE: std::ops::Range<usize> = 124..136;

/// A whole archive. The sums of its headers are set right first, or hardly any input would get past them.
pub(super) fn archive(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    Ground::new().add(&bytes);
}

/// Sets the sums of the headers of an archive, and of the archives in it, which begin at blocks like everything else.
fn mend(archive: &mut [u8]) {
    for block in archive.chunks_exact_mut(BLOCK) {
        if block.starts_with(&[0; 8]) || !looks_like_header(block) {
            continue;
        }
        block[SUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

/// A size is in octal digits, or in bytes with a mark before them.
fn looks_like_header(block: &[u8]) -> bool {
    let size = &block[SIZE];
    size[0] & 0x80 != 0 || size.iter().all(|byte| matches!(byte, b'0'..=b'7' | b' ' | 0))
}
