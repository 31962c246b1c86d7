//! Expressions as trees, with the places of their nodes.

mod aggregates;
mod operations;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue, SelectExpr, operators},
};

use super::{
    lexer::{self, Token, TokenKind},
    literal, macros,
    source::Issue,
    syntax,
};

/// How deep an expression may nest; `1 + 1 + 1` nests twice, since operators group to the left.
pub(super) const DEPTH_MAX: usize = 250;
/// How many brackets may stand in each other, which is what reading them needs the stack for.
const NESTING_MAX: usize = 150;
/// The longest accepted expression, in letters.
const LETTERS_MAX: usize = 100_000;
/// How many nodes an expression may have when its macros are written out.
const NODES_MAX: usize = 200_000;

/// Words that are no names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A tree, and where its nodes stand.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: IdedExpr,
    pub(super) places: Places,
}

/// Where nodes stand, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<usize>);

impl Places {
    /// Where a node stands.
    pub(super) fn of(&self, id: u64) -> Option<usize> {
        self.0.get(usize::try_from(id).ok()?).copied()
    }

    /// The number of a new node at a place.
    fn add(&mut self, place: usize) -> u64 {
        self.0.push(place);
        self.0.len() as u64 - 1
    }
}

/// A node, and how deep it is.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) node: IdedExpr,
    pub(super) depth: usize,
}

/// Why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// It does not follow the grammar.
    Syntax,
    /// It nests too deep.
    Depth,
    /// It has too many nodes.
    Size,
}

/// Parses an expression.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn parse(text: &str) -> Result<Parsed, Vec<Issue>> {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() > LETTERS_MAX {
        let size = letters.len();
        let message = format!("expression code point size exceeds limit: size: {size}, limit {LETTERS_MAX}");
        return Err(vec![Issue::of_all(message)]);
    }
    let Some(tokens) = lexer::read(&letters) else { return Err(syntax::issues(text, Vec::new())) };
    let mut parser = Parser { letters, tokens, at: 0, places: Places::default(), issues: Vec::new() };
    let parsed = parser.conditional(0).and_then(|root| match parser.kind() {
        TokenKind::End => Ok(root),
        _ => Err(Halt::Syntax),
    });
    let Parser { places, issues, .. } = parser;
    match parsed {
        Ok(root) if issues.is_empty() => Ok(Parsed { root: root.node, places }),
        Ok(_) => Err(issues),
        Err(Halt::Syntax) => Err(syntax::issues(text, issues)),
        Err(Halt::Depth) => Err(vec![Issue::of_all(format!("expression recursion limit exceeded: {DEPTH_MAX}"))]),
        Err(Halt::Size) => Err(vec![Issue::of_all(format!("expression has more than {NODES_MAX} nodes"))]),
    }
}

/// What is read of an expression.
pub(super) struct Parser {
    letters: Vec<char>,
    tokens: Vec<Token>,
    at: usize,
    places: Places,
    issues: Vec<Issue>,
}

type Read<T = Part> = Result<T, Halt>;

impl Parser {
    fn kind(&self) -> TokenKind {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> TokenKind {
        self.tokens.get(self.at + count).map_or(TokenKind::End, |token| token.kind)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.kind(), TokenKind::Sign(found) if found == sign)
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn take_if(&mut self, sign: &str) -> Option<Token> {
        self.is(sign).then(|| self.take())
    }

    fn expect(&mut self, sign: &str) -> Read<Token> {
        self.take_if(sign).ok_or(Halt::Syntax)
    }

    fn expect_name(&mut self) -> Read<Token> {
        if self.kind() == TokenKind::Name { Ok(self.take()) } else { Err(Halt::Syntax) }
    }

    fn text(&self, token: Token) -> String {
        self.letters[token.start..token.end].iter().collect()
    }

    /// The number of a new node.
    pub(super) fn id(&mut self, place: usize) -> Read<u64> {
        if self.places.0.len() < NODES_MAX { Ok(self.places.add(place)) } else { Err(Halt::Size) }
    }

    /// Where a node stands.
    pub(super) fn place(&self, id: u64) -> usize {
        self.places.of(id).unwrap_or_default()
    }

    /// Notes something wrong, and gives a node to go on with.
    pub(super) fn fault(&mut self, place: usize, message: &str) -> Read {
        self.issues.push(Issue { offset: Some(place), message: message.to_owned() });
        Ok(Part { node: IdedExpr { id: self.id(place)?, expr: Expr::Unspecified }, depth: 1 })
    }

    /// A node over parts of these depths.
    pub(super) fn over(&self, id: u64, expr: Expr, depths: impl IntoIterator<Item = usize>) -> Read {
        let depth = 1 + depths.into_iter().max().unwrap_or(0);
        if depth > DEPTH_MAX { Err(Halt::Depth) } else { Ok(Part { node: IdedExpr { id, expr }, depth }) }
    }

    fn conditional(&mut self, nesting: usize) -> Read {
        if nesting > NESTING_MAX {
            return Err(Halt::Depth);
        }
        let condition = self.operation(nesting)?;
        let Some(sign) = self.take_if("?") else { return Ok(condition) };
        let id = self.id(sign.start)?;
        let yes = self.operation(nesting)?;
        self.expect(":")?;
        let no = self.conditional(nesting + 1)?;
        self.call(id, operators::CONDITIONAL, None, vec![condition, yes, no])
    }

    fn member(&mut self, nesting: usize) -> Read {
        let mut part = self.primary(nesting)?;
        loop {
            part = if let Some(dot) = self.take_if(".") {
                self.after_dot(part, dot, nesting)?
            } else if let Some(bracket) = self.take_if("[") {
                let operator = if self.take_if("?").is_some() { operators::OPT_INDEX } else { operators::INDEX };
                let id = self.id(bracket.start)?;
                let index = self.conditional(nesting + 1)?;
                self.expect("]")?;
                self.call(id, operator, None, vec![part, index])?
            } else {
                return Ok(part);
            };
        }
    }

    fn after_dot(&mut self, operand: Part, dot: Token, nesting: usize) -> Read {
        let is_optional = self.take_if("?").is_some();
        let token = match self.kind() {
            TokenKind::Name | TokenKind::EscapedName => self.take(),
            _ => return Err(Halt::Syntax),
        };
        let name = self.text(token);
        if token.kind == TokenKind::EscapedName {
            self.fault(token.start, "unsupported syntax: '`'")?;
        }
        if is_optional {
            let id = self.id(dot.start)?;
            let field = Expr::Literal(LiteralValue::String(name.into()));
            let field = IdedExpr { id: self.id(token.start)?, expr: field };
            return self.call(id, operators::OPT_SELECT, None, vec![operand, Part { node: field, depth: 1 }]);
        }
        if let (TokenKind::Name, Some(open)) = (token.kind, self.take_if("(")) {
            let id = self.id(open.start)?;
            let args = self.arguments(nesting)?;
            return self.call(id, &name, Some(operand), args);
        }
        let id = self.id(dot.start)?;
        let depth = operand.depth;
        self.over(id, Expr::Select(SelectExpr { operand: Box::new(operand.node), field: name, test: false }), [depth])
    }

    /// What stands between parentheses, of which the first was read.
    fn arguments(&mut self, nesting: usize) -> Read<Vec<Part>> {
        let mut args = Vec::new();
        if self.take_if(")").is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.conditional(nesting + 1)?);
            if self.take_if(",").is_none() {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    /// A call of a function, or what a macro stands for.
    fn call(&mut self, id: u64, function: &str, target: Option<Part>, args: Vec<Part>) -> Read {
        if macros::is_one(function, target.is_some(), args.len()) {
            return macros::expanded(self, id, function, target, args);
        }
        let depths: Vec<usize> = target.iter().chain(&args).map(|part| part.depth).collect();
        let call = CallExpr {
            func_name: function.to_owned(),
            target: target.map(|target| Box::new(target.node)),
            args: args.into_iter().map(|part| part.node).collect(),
        };
        self.over(id, Expr::Call(call), depths)
    }

    fn primary(&mut self, nesting: usize) -> Read {
        let start = self.tokens[self.at].start;
        match self.kind() {
            TokenKind::Sign("(") => {
                self.take();
                let inner = self.conditional(nesting + 1)?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Sign("[") => self.list(nesting),
            TokenKind::Sign("{") => self.map(nesting),
            TokenKind::Sign(".") => {
                self.take();
                if self.kind() == TokenKind::Name { self.named(start, ".", nesting) } else { Err(Halt::Syntax) }
            }
            TokenKind::Name => self.named(start, "", nesting),
            TokenKind::Sign("-") => {
                self.take();
                self.literal(start)
            }
            TokenKind::Sign(_) | TokenKind::EscapedName | TokenKind::End => Err(Halt::Syntax),
            _ => self.literal(start),
        }
    }

    fn literal(&mut self, start: usize) -> Read {
        let token = self.take();
        // Between a sign and its number there may be white space.
        let sign = if token.start > start { "-" } else { "" };
        match literal::value(token.kind, &format!("{sign}{}", self.text(token))) {
            Ok(value) => Ok(Part { node: IdedExpr { id: self.id(start)?, expr: Expr::Literal(value) }, depth: 1 }),
            Err(message) => self.fault(start, message),
        }
    }

    /// A variable, a call, or a message.
    fn named(&mut self, start: usize, prefix: &str, nesting: usize) -> Read {
        if self.is_message() {
            return self.message(prefix, nesting);
        }
        let token = self.take();
        let name = self.text(token);
        let is_reserved = RESERVED.contains(&name.as_str());
        let full = format!("{prefix}{name}");
        if let Some(open) = self.take_if("(") {
            let id = self.id(open.start)?;
            let args = self.arguments(nesting)?;
            if !is_reserved {
                return self.call(id, &full, None, args);
            }
        } else if !is_reserved {
            let id = self.id(token.start)?;
            return self.over(id, Expr::Ident(full), []);
        }
        self.fault(start, &format!("reserved identifier: {name}"))
    }
}
