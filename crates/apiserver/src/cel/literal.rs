//! What literals in expressions stand for.

use kube_cel::cel::common::ast::LiteralValue;

use super::lexer::TokenKind;

/// The value of a literal of this kind, with its sign if it has one.
///
/// # Errors
/// What is wrong with it.
pub(super) fn value(kind: TokenKind, text: &str) -> Result<LiteralValue, &'static str> {
    match kind {
        TokenKind::Int => integer(text).map(|value| LiteralValue::Int(value.into())).ok_or("invalid int literal"),
        TokenKind::Uint => {
            let digits = &text[..text.len() - 1];
            let value = match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            value.map(|value| LiteralValue::UInt(value.into())).map_err(|_| "invalid uint literal")
        }
        TokenKind::Double => {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value.map(|value| LiteralValue::Double(value.into())).ok_or("invalid double literal")
        }
        TokenKind::Bytes => unquoted(&text[1..], true).map(|bytes| LiteralValue::Bytes(bytes.into())),
        TokenKind::True => Ok(LiteralValue::Boolean(true.into())),
        TokenKind::False => Ok(LiteralValue::Boolean(false.into())),
        TokenKind::Null => Ok(LiteralValue::Null),
        _ => {
            let bytes = unquoted(text, false)?;
            String::from_utf8(bytes).map(|text| LiteralValue::String(text.into())).map_err(|_| UNESCAPE)
        }
    }
}

const UNESCAPE: &str = "unable to unescape string";

fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix('-').map_or((false, text), |rest| (true, rest)) {
        (negative, digits) if digits.starts_with("0x") => {
            let value = i128::from_str_radix(&digits[2..], 16).ok()?;
            i64::try_from(if negative { -value } else { value }).ok()
        }
        _ => text.parse().ok(),
    }
}

/// A text without its quotes and with what its escapes mean.
fn unquoted(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (is_raw, text) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let quotes = if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) { 3 } else { 1 };
    let text = &text[quotes..text.len() - quotes];
    if is_raw {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            escaped(&mut letters, is_bytes, &mut bytes)?;
        } else {
            push(letter, &mut bytes);
        }
    }
    Ok(bytes)
}

fn push(letter: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Reads what follows a backslash.
fn escaped(letters: &mut std::str::Chars<'_>, is_bytes: bool, bytes: &mut Vec<u8>) -> Result<(), &'static str> {
    let kind = letters.next().ok_or(UNESCAPE)?;
    let simple = match kind {
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        '\\' | '\'' | '"' | '`' | '?' => Some(kind),
        _ => None,
    };
    if let Some(letter) = simple {
        push(letter, bytes);
        return Ok(());
    }
    let (known, radix, digits) = match kind {
        'x' | 'X' => (0, 16, 2),
        'u' if !is_bytes => (0, 16, 4),
        'U' if !is_bytes => (0, 16, 8),
        '0'..='3' => (u32::from(kind) - u32::from('0'), 8, 2),
        _ => return Err(UNESCAPE),
    };
    let mut code = known;
    for _ in 0..digits {
        let digit = letters.next().and_then(|letter| letter.to_digit(radix)).ok_or(UNESCAPE)?;
        code = code.checked_mul(radix).and_then(|code| code.checked_add(digit)).ok_or("invalid unicode code point")?;
    }
    match u8::try_from(code) {
        Ok(byte) if is_bytes => bytes.push(byte),
        _ => push(char::from_u32(code).ok_or("invalid unicode code point")?, bytes),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_values() {
        let text = |text: &str| match value(TokenKind::Text, text) {
            Ok(LiteralValue::String(text)) => text.inner().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(r"'a\n\x41\u00e9\101\'\?'"), "a\nA\u{e9}A'?");
        assert_eq!(text("r'a\\n'"), "a\\n");
        assert_eq!(text("'''a'b\r\nc'''"), "a'b\nc");
        assert_eq!(text("\"\""), "");
        let bytes = value(TokenKind::Bytes, r"b'\xff\101é'").unwrap();
        assert_eq!(bytes, LiteralValue::Bytes(vec![0xff, b'A', 0xc3, 0xa9].into()));
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("-0x10"), Some(-16));
        for (kind, wrong, why) in [
            (TokenKind::Int, "9223372036854775808", "invalid int literal"),
            (TokenKind::Uint, "18446744073709551616u", "invalid uint literal"),
            (TokenKind::Double, "1e999", "invalid double literal"),
            (TokenKind::Text, r"'\ud800'", "invalid unicode code point"),
            (TokenKind::Bytes, r"b'\u0041'", UNESCAPE),
        ] {
            assert_eq!(value(kind, wrong), Err(why), "{wrong}");
        }
    }
}
