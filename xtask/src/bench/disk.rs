//! What the disk itself takes: the floor of every durable write, on both sides.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

/// How much is written before each sync: some objects.
const WRITE_BYTES: usize = 8 << 10;
/// How often it is measured.
const SYNCS: usize = 500;

/// How long a write of a few kilobytes takes to reach the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Writes over a file in `folder` that is there already, as both servers' logs do, and syncs each time.
pub(super) fn measure(folder: &Path) -> Result<Sync> {
    let path = folder.join("sync");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all_at(&vec![0; WRITE_BYTES * SYNCS], 0)?;
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS);
    for index in 0..SYNCS {
        let begin = Instant::now();
        file.write_all_at(&[1; WRITE_BYTES], (index * WRITE_BYTES) as u64)?;
        file.sync_data()?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    fs::remove_file(&path)?;
    times.sort_by(f64::total_cmp);
    Ok(Sync { p50_ms: times[SYNCS / 2], p99_ms: times[SYNCS * 99 / 100] })
}
