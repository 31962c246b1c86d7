//! The two lines of a project's `src/lib.rs` that a new kind needs: its module, and its operator in the program.

use crate::failure::Failure;

/// The call that makes the program.
const PROGRAM: &str = "windlass::program(";
/// A chain of calls stays on one line up to this length, as rustfmt has it.
const CHAIN_LENGTH_MAX: usize = 60;

/// The file was changed beyond recognition: what a person has to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByHand {
    module: String,
}

impl ByHand {
    /// What to tell the person.
    pub(crate) fn into_failure(self) -> Failure {
        let module = self.module;
        Failure::new(
            "the files are made, but src/lib.rs was changed so much that the kind cannot be added to the program",
        )
        .advice(format!(
            "add two lines by hand: `pub mod {module};`, and `.with({module}::app())` after `windlass::program(…)`"
        ))
    }
}

/// Adds the kind of `module` to the text of `src/lib.rs`.
pub(crate) fn wire(text: &str, module: &str) -> Result<String, ByHand> {
    let by_hand = || ByHand { module: module.to_owned() };
    let chain = Chain::find(text).ok_or_else(by_hand)?;
    let place = module_place(text, module);
    if place.offset > chain.start {
        return Err(by_hand());
    }
    let mut wired = text[..place.offset].to_owned();
    wired.push_str(&format!("{}pub mod {module};\n{}", place.before, place.after));
    wired.push_str(&text[place.offset..chain.start]);
    wired.push_str(&chain.with(text, module));
    wired.push_str(&text[chain.end..]);
    Ok(wired)
}

/// Where a line goes, and what it needs around it.
struct Place {
    offset: usize,
    before: &'static str,
    after: &'static str,
}

/// Among the modules, in their order; after the words about the file, if there is no module yet.
fn module_place(text: &str, module: &str) -> Place {
    let (mut offset, mut after_modules, mut after_words) = (0, None, None);
    for line in text.split_inclusive('\n') {
        let declared = line
            .trim_end()
            .strip_suffix(';')
            .and_then(|line| line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod ")).map(str::trim));
        if let Some(declared) = declared {
            if declared > module && after_modules.is_none() {
                return Place { offset, before: "", after: "" };
            }
            if declared > module {
                break;
            }
            after_modules = Some(offset + line.len());
        }
        if line.starts_with("//!") || line.starts_with("#![") {
            after_words = Some(offset + line.len());
        }
        offset += line.len();
    }
    match (after_modules, after_words) {
        (Some(offset), _) => Place { offset, before: "", after: "" },
        (None, Some(offset)) => Place { offset, before: "\n", after: "" },
        (None, None) => Place { offset: 0, before: "", after: "\n" },
    }
}

/// The expression that makes the program: the call, and the operators that are added to it.
struct Chain {
    start: usize,
    end: usize,
    /// Where each call ends, the first included.
    links: Vec<usize>,
}

impl Chain {
    /// Finds the one call in the code; comments and texts do not count.
    fn find(text: &str) -> Option<Self> {
        let code = blank(text);
        let mut found = code.match_indices(PROGRAM).map(|(start, _)| start);
        let (start, None) = (found.next()?, found.next()) else { return None };
        let mut end = closing(&code, start + PROGRAM.len() - 1)?;
        let mut links = vec![end];
        loop {
            let rest = &code[end..];
            let gap = rest.len() - rest.trim_start().len();
            if !rest[gap..].starts_with(".with(") {
                return Some(Self { start, end, links });
            }
            end = closing(&code, end + gap + ".with".len())?;
            links.push(end);
        }
    }

    /// The expression with one more operator, on one line or on many as rustfmt would have it.
    fn with(&self, text: &str, module: &str) -> String {
        let link = format!(".with({module}::app())");
        let expression = &text[self.start..self.end];
        if expression.contains("//") || expression.contains("/*") {
            return format!("{expression}\n        {link}");
        }
        let starts = std::iter::once(self.start).chain(self.links.iter().copied());
        let mut calls: Vec<&str> = starts.zip(&self.links).map(|(start, end)| text[start..*end].trim()).collect();
        calls.push(&link);
        let line = calls.concat();
        if line.len() <= CHAIN_LENGTH_MAX { line } else { calls.join("\n        ") }
    }
}

/// The end of the brackets that open at `open`.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, letter) in code[open..].char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(open + offset + 1);
        }
    }
    None
}

/// The text with blanks for comments and for what is inside of quotes, every byte at its place.
fn blank(text: &str) -> String {
    #[derive(Clone, Copy, PartialEq)]
    enum Inside {
        Code,
        Line,
        Block,
        Quotes,
    }
    let (mut inside, mut out, mut letters) = (Inside::Code, String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let was = inside;
        inside = match (inside, letter, next) {
            (Inside::Code, '/', Some('/')) => Inside::Line,
            (Inside::Code, '/', Some('*')) => Inside::Block,
            (Inside::Code, '"', _) => Inside::Quotes,
            (Inside::Line, '\n', _) | (Inside::Quotes, '"', _) => Inside::Code,
            (Inside::Block, '*', Some('/')) => Inside::Code,
            (inside, ..) => inside,
        };
        let is_code = (was == Inside::Code && inside == Inside::Code) || letter == '\n';
        out.push_str(&if is_code { letter.to_string() } else { " ".repeat(letter.len_utf8()) });
        let is_pair = (was == Inside::Block && inside == Inside::Code) || (was == Inside::Quotes && letter == '\\');
        if let Some(second) = is_pair.then(|| letters.next()).flatten() {
            out.push_str(&" ".repeat(second.len_utf8()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "//! Words.\n\nuse windlass::Crew;\n\n/// All.\npub fn program() -> Crew {\n    windlass::program(\"shop\")\n}\n";

    #[test]
    fn each_kind_becomes_a_module_and_a_part_of_the_program() {
        let one = wire(NEW, "site").unwrap();
        assert_eq!(
            one,
            "//! Words.\n\npub mod site;\n\nuse windlass::Crew;\n\n/// All.\npub fn program() -> Crew {\n    windlass::program(\"shop\").with(site::app())\n}\n"
        );
        let two = wire(&one, "address").unwrap();
        assert!(two.starts_with("//! Words.\n\npub mod address;\npub mod site;\n\nuse"), "{two}");
        let chain = "    windlass::program(\"shop\")\n        .with(site::app())\n        .with(address::app())\n}\n";
        assert!(two.ends_with(chain), "{two}");
        let three = wire(&two, "basket").unwrap();
        assert!(three.contains("pub mod address;\npub mod basket;\npub mod site;\n"), "{three}");
        assert!(three.ends_with("        .with(address::app())\n        .with(basket::app())\n}\n"), "{three}");
    }

    #[test]
    fn what_a_person_wrote_stays() {
        let text = "mod zoo;\n// windlass::program(\"old\")\nfn it() -> Crew {\n    let crew = windlass::program(\"a)b\").with(zoo::app(\"(\")); // mine\n    crew\n}\n";
        let wired = wire(text, "site").unwrap();
        let expect = "pub mod site;\nmod zoo;\n// windlass::program(\"old\")\nfn it() -> Crew {\n    let crew = windlass::program(\"a)b\")\n        .with(zoo::app(\"(\"))\n        .with(site::app()); // mine\n    crew\n}\n";
        assert_eq!(wired, expect);
        let noted = "fn it() {\n    windlass::program(\"a\")\n        // The first.\n        .with(a::app())\n}\n";
        let expect = "pub mod b;\n\nfn it() {\n    windlass::program(\"a\")\n        // The first.\n        .with(a::app())\n        .with(b::app())\n}\n";
        assert_eq!(wire(noted, "b").unwrap(), expect);
    }

    #[test]
    fn a_file_beyond_recognition_is_left_to_a_person() {
        for text in [
            "",
            "fn main() {}",
            "// windlass::program(\"x\")",
            "windlass::program(\"a\"); windlass::program(\"b\")",
            "windlass::program((",
        ] {
            assert_eq!(wire(text, "site"), Err(ByHand { module: "site".into() }), "{text}");
        }
        let failure = ByHand { module: "site".into() }.into_failure().as_json().to_string();
        assert!(failure.contains("`pub mod site;`") && failure.contains("`.with(site::app())`"), "{failure}");
    }
}
