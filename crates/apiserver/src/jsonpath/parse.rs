//! From text to steps.

use serde_json::Value;

use super::{Comparison, FILTER_DEPTH_MAX, Filter, JsonPathError, Operand, PATH_BYTES_MAX, Slice, Step};

/// Reads a whole path.
pub(super) fn path(text: &str) -> Result<Vec<Step>, JsonPathError> {
    if text.len() > PATH_BYTES_MAX {
        return Err(JsonPathError::TooLong);
    }
    if !text.starts_with(['.', '[', '$', '@']) {
        return Err(JsonPathError::NoLeadingDot);
    }
    let mut cursor = Cursor { text, at: 0, depth: 0 };
    cursor.skip_root();
    let steps = cursor.steps()?;
    match cursor.peek() {
        None => Ok(steps),
        Some(other) => Err(JsonPathError::Unexpected(other, cursor.at)),
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let matches = self.text[self.at..].starts_with(prefix);
        if matches {
            self.at += prefix.len();
        }
        matches
    }

    fn skip_space(&mut self) {
        while self.eat(" ") {}
    }

    fn skip_root(&mut self) {
        if !self.eat("$") {
            self.eat("@");
        }
    }

    fn unexpected(&self) -> JsonPathError {
        self.peek().map_or(JsonPathError::Unterminated("path"), |other| JsonPathError::Unexpected(other, self.at))
    }

    fn steps(&mut self) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Recursive);
                if self.peek() != Some('[') {
                    steps.extend(self.member());
                }
            } else if self.eat(".") {
                steps.extend(self.member());
            } else if self.eat("[") {
                steps.push(self.bracket()?);
            } else {
                return Ok(steps);
            }
        }
    }

    /// The name after a dot; none for a lone dot, which names the value itself.
    fn member(&mut self) -> Option<Step> {
        if self.eat("*") {
            return Some(Step::Wildcard);
        }
        let mut name = String::new();
        while let Some(next) = self.peek() {
            match next {
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else { break };
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
                '.' | '[' | ']' | ')' | '(' | ' ' | '=' | '!' | '<' | '>' | ',' | '~' | '&' | '|' => break,
                other => {
                    name.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
        (!name.is_empty()).then_some(Step::Field(name))
    }

    fn bracket(&mut self) -> Result<Step, JsonPathError> {
        if self.eat("?(") {
            let filter = self.filter()?;
            return if self.eat(")]") { Ok(Step::Filter(Box::new(filter))) } else { Err(self.unexpected()) };
        }
        let mut parts = vec![self.bracket_part()?];
        loop {
            self.skip_space();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(self.unexpected());
            }
            self.skip_space();
            parts.push(self.bracket_part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Step::Union(parts) })
    }

    fn bracket_part(&mut self) -> Result<Step, JsonPathError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Step::Wildcard)
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Step::Field),
            _ => self.slice(),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, JsonPathError> {
        self.at += 1;
        let mut text = String::new();
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            if next == quote {
                return Ok(text);
            }
            if next != '\\' {
                text.push(next);
                continue;
            }
            let escaped = self.peek().ok_or(JsonPathError::Unterminated("escape"))?;
            self.at += escaped.len_utf8();
            text.push(escaped);
        }
        Err(JsonPathError::Unterminated("quote"))
    }

    fn slice(&mut self) -> Result<Step, JsonPathError> {
        let rest = &self.text[self.at..];
        let length = rest.find([']', ',']).ok_or(JsonPathError::Unterminated("array"))?;
        let text = rest[..length].trim();
        self.at += length;
        let bad = || JsonPathError::Index(text.to_owned());
        let parts: Vec<Option<i64>> = text
            .split(':')
            .map(|part| if part.is_empty() { Ok(None) } else { part.trim().parse().map(Some) })
            .collect::<Result<_, _>>()
            .map_err(|_| bad())?;
        let step = parts.get(2).copied().flatten().unwrap_or(1);
        if text.is_empty() || parts.len() > 3 || step < 1 {
            return Err(bad());
        }
        let single = parts.len() == 1;
        let end = if single { None } else { parts[1] };
        Ok(Step::Slice(Slice { start: parts[0], end, step, single }))
    }

    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        self.depth += 1;
        if self.depth > FILTER_DEPTH_MAX {
            return Err(JsonPathError::TooDeep);
        }
        self.skip_space();
        let left = self.operand()?;
        self.skip_space();
        let comparison = self.comparison();
        let comparison = match comparison {
            None => None,
            Some(comparison) => {
                self.skip_space();
                let right = self.operand()?;
                self.skip_space();
                Some((comparison, right))
            }
        };
        self.depth -= 1;
        Ok(Filter { left, comparison })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let known = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        known.into_iter().find(|(text, _)| self.eat(text)).map(|(_, comparison)| comparison)
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        match self.peek() {
            Some('@' | '$' | '.' | '[') => {
                self.skip_root();
                self.steps().map(Operand::Path)
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(|text| Operand::Literal(Value::from(text))),
            Some(_) => self.literal(),
            None => Err(JsonPathError::Unterminated("filter")),
        }
    }

    fn literal(&mut self) -> Result<Operand, JsonPathError> {
        let rest = &self.text[self.at..];
        let length = rest.find([')', ' ', '=', '!', '<', '>']).ok_or(JsonPathError::Unterminated("filter"))?;
        let value: Value = serde_json::from_str(&rest[..length]).map_err(|_| self.unexpected())?;
        self.at += length;
        Ok(Operand::Literal(value))
    }
}
