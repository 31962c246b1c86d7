//! How deep an expression nests, told from its text: parsing and walking what is deeper would exhaust the stack.

/// How deep an expression may nest; `1 + 1 + 1` nests twice, since operators group to the left.
const DEPTH_MAX: usize = 250;

/// Refuses an expression that nests too deep.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut depth = Depth::default();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => literal_length(rest, depth.is_raw),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if first.is_alphanumeric() || first == '_' => word_length(rest),
            _ => ["&&", "||"].iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len()),
        };
        let (token, others) = rest.split_at(length);
        depth.read(token);
        if depth.total() > DEPTH_MAX {
            return Err(format!("expression recursion limit exceeded: {DEPTH_MAX}"));
        }
        rest = others;
    }
    Ok(())
}

/// The depth of what was read so far.
#[derive(Default)]
struct Depth {
    /// The group that is read.
    group: Group,
    /// The groups around it, the outermost first, and the sum of their depths.
    outer: Vec<Group>,
    outer_sum: usize,
    /// Whether a text that follows knows no escapes.
    is_raw: bool,
}

/// What stands between brackets, or all.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Operators of the chain that is read.
    operators: usize,
    /// The depth of its deepest operand, and of the operand that is read.
    deepest: usize,
    operand: usize,
    /// The depth of the deepest group in the operand.
    inner: usize,
    /// The depth of the deepest chain before.
    before: usize,
}

impl Depth {
    fn total(&self) -> usize {
        self.outer_sum + self.outer.len() + self.group.depth()
    }

    fn read(&mut self, token: &str) {
        self.is_raw = matches!(token, "r" | "R" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB");
        match token {
            "(" | "[" | "{" => {
                self.group.operand += 1;
                self.outer_sum += self.group.depth();
                self.outer.push(std::mem::take(&mut self.group));
            }
            ")" | "]" | "}" => {
                let Some(outer) = self.outer.pop() else { return };
                let inner = std::mem::replace(&mut self.group, outer);
                self.outer_sum -= self.group.depth();
                self.group.inner = self.group.inner.max(inner.depth() + 1);
            }
            "." => self.group.operand += 1,
            "," | "&&" | "||" | "?" | ":" => self.group.end_chain(),
            "+" | "-" | "*" | "/" | "%" | "=" | "<" | ">" | "!" | "in" => self.group.end_operand(),
            _ => {}
        }
    }
}

impl Group {
    fn depth(&self) -> usize {
        self.before.max(self.operators + self.deepest.max(self.operand + self.inner))
    }

    fn end_operand(&mut self) {
        self.operators += 1;
        self.deepest = self.deepest.max(self.operand + self.inner);
        (self.operand, self.inner) = (0, 0);
    }

    fn end_chain(&mut self) {
        *self = Self { before: self.depth(), ..Self::default() };
    }
}

fn word_length(text: &str) -> usize {
    text.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(text.len())
}

/// The length of the text literal at the start; one that does not end is for the parser to refuse.
fn literal_length(text: &str, is_raw: bool) -> usize {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let end = if text.starts_with(&triple) { triple.as_str() } else { quote };
    let mut position = end.len();
    while position < text.len() && !text[position..].starts_with(end) {
        let mut characters = text[position..].chars();
        let escapes = characters.next() == Some('\\') && !is_raw;
        let skipped = text.len() - position - characters.as_str().len();
        position += skipped + if escapes { characters.next().map_or(0, char::len_utf8) } else { 0 };
    }
    (position + end.len()).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_too_deep_is_refused() {
        for text in [
            "+1".repeat(300),
            ".a".repeat(300),
            "(".repeat(300),
            format!("{}1{}", "(1+".repeat(130), ")".repeat(130)),
            format!("{}a", "f(1, 2, [".repeat(100)),
            format!("'{}' + {}", "x", "a.b(c)[d].".repeat(80)),
            "!".repeat(300),
            format!("r'\\' {}", "+1".repeat(300)),
        ] {
            assert_eq!(check(&text).unwrap_err(), "expression recursion limit exceeded: 250", "{text}");
        }
    }

    #[test]
    fn what_is_only_long_is_not() {
        for text in [
            "a.b + 1 > 2 && ".repeat(2000),
            "f(a), ".repeat(2000),
            format!("'{}'", "((((++..".repeat(2000)),
            format!("\"\"\"{}\"\"\"", "'(\"\\\"".repeat(2000)),
            format!("1 // {}", "(".repeat(2000)),
            "a.b.c(d)[e] + ".repeat(100),
            "été (".repeat(100),
            "')".to_owned(),
            "'\\".to_owned(),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
    }
}
