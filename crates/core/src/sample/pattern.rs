//! Texts made after a pattern.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::value::Dice;

/// How often something that may be repeated for ever is repeated at most.
const REPEATS_MAX: u32 = 6;

/// A text that the pattern matches; `None` if it cannot be understood.
pub(super) fn text(pattern: &str, dice: &mut Dice) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut bytes = Vec::new();
    write(&hir, dice, &mut bytes);
    String::from_utf8(bytes).ok()
}

/// Whether the pattern matches the text; a pattern that cannot be understood matches everything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    regex::Regex::new(pattern).map_or(true, |regex| regex.is_match(text))
}

fn write(hir: &Hir, dice: &mut Dice, out: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
        HirKind::Class(class) => write_one_of(class, dice, out),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(REPEATS_MAX));
            let count = u64::from(repetition.min) + dice.below(u64::from(most - repetition.min) + 1);
            (0..count).for_each(|_| write(&repetition.sub, dice, out));
        }
        HirKind::Capture(capture) => write(&capture.sub, dice, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, dice, out)),
        HirKind::Alternation(parts) => {
            let chosen = usize::try_from(dice.below(parts.len() as u64)).unwrap_or_default();
            write(&parts[chosen], dice, out);
        }
    }
}

fn write_one_of(class: &Class, dice: &mut Dice, out: &mut Vec<u8>) {
    match class {
        Class::Unicode(class) => {
            let ranges = class.ranges();
            let Some(range) = ranges.get(usize::try_from(dice.below(ranges.len() as u64)).unwrap_or_default()) else {
                return;
            };
            let (start, end) = (u32::from(range.start()), u32::from(range.end()));
            let chosen = start + u32::try_from(dice.below(u64::from(end - start) + 1)).unwrap_or_default();
            // Between the two are numbers that are no characters.
            let character = char::from_u32(chosen).unwrap_or(range.start());
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Class::Bytes(class) => out.extend(class.ranges().first().map(|range| range.start())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_patterns() {
        let patterns = [
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            r"^\d{4}-\d{2}$",
            "^(red|green|blue)$",
            r"^([a-z]+\.)+[a-z]{2,}$",
            "^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$",
        ];
        for pattern in patterns {
            for seed in 0..50 {
                let made = text(pattern, &mut Dice::new(seed)).unwrap();
                assert!(matches(pattern, &made), "{made:?} does not match {pattern}");
            }
        }
        assert_eq!(text("(", &mut Dice::new(0)), None);
    }
}
