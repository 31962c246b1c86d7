//! What pages of the book say that commands print.

/// A command and what it prints, where `…` stands for any text, and alone for any lines.
pub(crate) struct Example {
    pub(crate) command: String,
    printed: Vec<String>,
}

/// The blocks of a page that show a console.
pub(crate) fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        let mut block = lines.by_ref().take_while(|line| *line != "```");
        let command = block.next().and_then(|line| line.strip_prefix("$ ")).expect("a console begins with a command");
        examples.push(Example { command: command.to_owned(), printed: block.map(str::to_owned).collect() });
    }
    examples
}

impl Example {
    /// The first line of the page that is not in what was printed, or not in that place.
    pub(crate) fn missing<'a>(&'a self, printed: &str) -> Option<&'a str> {
        let mut lines = printed.lines().map(plain);
        let mut may_skip = false;
        for expected in &self.printed {
            if expected == "…" {
                may_skip = true;
                continue;
            }
            let expect = plain(expected);
            let found = if may_skip {
                lines.any(|line| fits(&line, &expect))
            } else {
                lines.next().is_some_and(|line| fits(&line, &expect))
            };
            if !found {
                return Some(expected);
            }
            may_skip = false;
        }
        (!may_skip && lines.next().is_some()).then_some("the end")
    }
}

/// A line without what sets columns apart.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is as expected, where `…` stands for any text. Indentation counts for nothing: pages and programs differ.
pub(crate) fn fits(line: &str, expected: &str) -> bool {
    let (line, expected) = (line.trim(), expected.trim());
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
