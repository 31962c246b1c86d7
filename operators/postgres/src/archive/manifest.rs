//! What the manifest of a base backup says of the log that it needs.

use serde::Deserialize;

/// The part of a manifest that counts here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Manifest {
    #[serde(rename = "WAL-Ranges")]
    ranges: Vec<WalRange>,
}

/// The log of a timeline that a backup needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct WalRange {
    #[serde(rename = "Timeline")]
    pub(crate) timeline: u32,
    #[serde(rename = "Start-LSN")]
    pub(crate) begin: String,
    #[serde(rename = "End-LSN")]
    pub(crate) end: String,
}

impl Manifest {
    /// Reads the manifest that `pg_basebackup` wrote.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// From where to where the log is needed, as one range on the last timeline.
    pub(crate) fn range(&self) -> Option<WalRange> {
        let (first, last) = (
            self.ranges.iter().min_by_key(|range| range.timeline)?,
            self.ranges.iter().max_by_key(|range| range.timeline)?,
        );
        Some(WalRange { timeline: last.timeline, begin: first.begin.clone(), end: last.end.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_that_is_needed_is_read_from_the_manifest() {
        let text = r#"{"PostgreSQL-Backup-Manifest-Version": 1, "Files": [{"Path": "a", "Size": 1}],
            "WAL-Ranges": [{"Timeline": 2, "Start-LSN": "0/5000000", "End-LSN": "0/5000100"},
                           {"Timeline": 1, "Start-LSN": "0/4000028", "End-LSN": "0/5000000"}],
            "Manifest-Checksum": "00"}"#;
        let range = Manifest::read(text).unwrap().range();
        let expected = WalRange { timeline: 2, begin: "0/4000028".into(), end: "0/5000100".into() };
        assert_eq!(range, Some(expected));
        assert!(Manifest::read("{}").is_err());
    }
}
