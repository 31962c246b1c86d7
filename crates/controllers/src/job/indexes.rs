//! Sets of completion indexes, as a Job's status writes them: `0-2,5`.

use std::collections::BTreeSet;

/// A set of indexes.
pub(crate) type Indexes = BTreeSet<i32>;

/// Reads the form of the status; what cannot be read is left out.
pub(crate) fn parse(text: &str) -> Indexes {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Writes the form of the status: runs of three and more as a range.
pub(crate) fn format(indexes: &Indexes) -> String {
    let mut runs: Vec<(i32, i32)> = vec![];
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let run = |(first, last): &(i32, i32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_in_runs() {
        for (list, text) in
            [(vec![], ""), (vec![1], "1"), (vec![1, 2], "1,2"), (vec![0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9")]
        {
            let indexes: Indexes = list.into_iter().collect();
            assert_eq!(format(&indexes), text);
            assert_eq!(parse(text), indexes);
        }
    }
}
