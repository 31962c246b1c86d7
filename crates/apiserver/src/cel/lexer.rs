//! The words of an expression.

/// A word, and where it stands, in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    /// A name in backticks.
    EscapedName,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    True,
    False,
    Null,
    /// An operator or a bracket, or the word `in`.
    Sign(&'static str),
    End,
}

/// All operators and brackets, the longer ones first.
const SIGNS: [&str; 23] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/",
];
const PERCENT: &str = "%";

/// The words of an expression, the last one its end; `None` if something in it is no word.
pub(super) fn read(letters: &[char]) -> Option<Vec<Token>> {
    let mut lexer = Lexer { letters, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip();
        let start = lexer.at;
        let kind = lexer.next()?;
        tokens.push(Token { kind, start, end: lexer.at });
        if kind == TokenKind::End {
            return Some(tokens);
        }
    }
}

struct Lexer<'a> {
    letters: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(index, letter)| self.peek(index) == Some(letter))
    }

    /// Goes past white space and comments.
    fn skip(&mut self) {
        loop {
            match self.peek(0) {
                Some('\t' | ' ' | '\r' | '\n' | '\u{c}') => self.at += 1,
                Some('/') if self.peek(1) == Some('/') => {
                    while self.peek(0).is_some_and(|letter| letter != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn next(&mut self) -> Option<TokenKind> {
        let Some(first) = self.peek(0) else { return Some(TokenKind::End) };
        if let Some(kind) = self.quoted() {
            return kind;
        }
        match first {
            '0'..='9' => Some(self.number()),
            '.' if self.peek(1).is_some_and(|letter| letter.is_ascii_digit()) => Some(self.number()),
            'a'..='z' | 'A'..='Z' | '_' => Some(self.name()),
            '`' => self.escaped_name(),
            _ => {
                let sign = SIGNS.iter().chain([&PERCENT]).find(|sign| self.starts_with(sign))?;
                self.at += sign.len();
                Some(TokenKind::Sign(sign))
            }
        }
    }

    fn name(&mut self) -> TokenKind {
        let start = self.at;
        while self.peek(0).is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            self.at += 1;
        }
        match self.letters[start..self.at].iter().collect::<String>().as_str() {
            "true" => TokenKind::True,
            "false" => TokenKind::False,
            "null" => TokenKind::Null,
            "in" => TokenKind::Sign("in"),
            _ => TokenKind::Name,
        }
    }

    fn escaped_name(&mut self) -> Option<TokenKind> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_.-/ ".contains(letter);
        let length = (1..).take_while(|ahead| self.peek(*ahead).is_some_and(is_part)).count();
        if length == 0 || self.peek(length + 1) != Some('`') {
            return None;
        }
        self.at += length + 2;
        Some(TokenKind::EscapedName)
    }

    fn digits(&mut self, is_digit: impl Fn(char) -> bool) -> usize {
        let start = self.at;
        while self.peek(0).is_some_and(&is_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> TokenKind {
        let is_hexadecimal = self.starts_with("0x") && self.peek(2).is_some_and(|letter| letter.is_ascii_hexdigit());
        if is_hexadecimal {
            self.at += 2;
            self.digits(|letter| letter.is_ascii_hexdigit());
        } else {
            self.digits(|letter| letter.is_ascii_digit());
            let fraction = self.peek(0) == Some('.') && self.peek(1).is_some_and(|letter| letter.is_ascii_digit());
            if fraction {
                self.at += 1;
                self.digits(|letter| letter.is_ascii_digit());
            }
            if self.exponent() || fraction {
                return TokenKind::Double;
            }
        }
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return TokenKind::Uint;
        }
        TokenKind::Int
    }

    fn exponent(&mut self) -> bool {
        let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
        let has_one = matches!(self.peek(0), Some('e' | 'E'))
            && self.peek(1 + sign).is_some_and(|letter| letter.is_ascii_digit());
        if has_one {
            self.at += 1 + sign;
            self.digits(|letter| letter.is_ascii_digit());
        }
        has_one
    }

    /// A text or bytes; the inner `None` if it does not end.
    fn quoted(&mut self) -> Option<Option<TokenKind>> {
        let mut prefix = 0;
        let is_bytes = matches!(self.peek(0), Some('b' | 'B'));
        prefix += usize::from(is_bytes);
        let is_raw = matches!(self.peek(prefix), Some('r' | 'R'));
        prefix += usize::from(is_raw);
        let quote = self.peek(prefix).filter(|letter| matches!(letter, '"' | '\''))?;
        let quotes = if (1..3).all(|ahead| self.peek(prefix + ahead) == Some(quote)) { 3 } else { 1 };
        self.at += prefix + quotes;
        let kind = if is_bytes { TokenKind::Bytes } else { TokenKind::Text };
        Some(self.text_end(quote, quotes, is_raw).then_some(kind))
    }

    fn text_end(&mut self, quote: char, quotes: usize, is_raw: bool) -> bool {
        loop {
            let Some(letter) = self.peek(0) else { return false };
            if (0..quotes).all(|ahead| self.peek(ahead) == Some(quote)) {
                self.at += quotes;
                return true;
            }
            match letter {
                '\\' if !is_raw => match self.escape_length() {
                    Some(length) => self.at += length,
                    None => return false,
                },
                '\n' | '\r' if quotes == 1 => return false,
                _ => self.at += 1,
            }
        }
    }

    /// How long the escape is that stands here, if it is one.
    fn escape_length(&self) -> Option<usize> {
        let (digits, radix, first) = match self.peek(1)? {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => return Some(2),
            'x' | 'X' => (2, 16, 2),
            'u' => (4, 16, 2),
            'U' => (8, 16, 2),
            '0'..='3' => (3, 8, 1),
            _ => return None,
        };
        let is_digit = |ahead: usize| self.peek(ahead).is_some_and(|letter| letter.is_digit(radix));
        (first..first + digits).all(is_digit).then_some(first + digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<(TokenKind, String)>> {
        let letters: Vec<char> = text.chars().collect();
        let tokens = read(&letters)?;
        Some(tokens.iter().map(|token| (token.kind, letters[token.start..token.end].iter().collect())).collect())
    }

    #[test]
    fn words_are_told_apart() {
        use TokenKind::{Bytes, Double, Int, Name, Sign, Text, True, Uint};
        let rows = [
            ("a1_b", Name),
            ("true", True),
            ("in", Sign("in")),
            ("12", Int),
            ("0xFf", Int),
            ("0xFu", Uint),
            ("3u", Uint),
            ("1.5e-3", Double),
            (".5", Double),
            ("1e3", Double),
            ("'a\\'b'", Text),
            ("r'\\'", Text),
            ("'''a'b\nc'''", Text),
            ("\"\"", Text),
            ("b'\\xff'", Bytes),
            ("bR\"x\"", Bytes),
            ("<=", Sign("<=")),
            ("%", Sign("%")),
        ];
        for (text, kind) in rows {
            let found = words(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found[0], (kind, text.to_owned()));
            assert_eq!(found.len(), 2, "{text}: {found:?}");
        }
        let kinds: Vec<_> = words("a.b[1] // c\n+2").unwrap().into_iter().map(|(kind, _)| kind).collect();
        let expected = [Name, Sign("."), Name, Sign("["), Int, Sign("]"), Sign("+"), Int, TokenKind::End];
        assert_eq!(kinds, expected);
        for wrong in ["'a", "'\\q'", "a # b", "'a\nb'", "`", "a = b", "'\\u12'"] {
            assert_eq!(words(wrong), None, "{wrong}");
        }
    }
}
