//! Lists, maps and messages.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, ListExpr, MapEntryExpr, MapExpr, StructExpr, StructFieldExpr,
};

use super::{Halt, Parser, Read, TokenKind};

impl Parser {
    /// Whether names with dots between them and a brace follow.
    pub(super) fn is_message(&self) -> bool {
        let mut ahead = 1;
        while self.ahead(ahead) == TokenKind::Sign(".") && self.ahead(ahead + 1) == TokenKind::Name {
            ahead += 2;
        }
        self.ahead(ahead) == TokenKind::Sign("{")
    }

    pub(super) fn message(&mut self, prefix: &str, nesting: usize) -> Read {
        let first = self.take();
        let mut type_name = format!("{prefix}{}", self.text(first));
        while self.take_if(".").is_some() {
            let name = self.expect_name()?;
            type_name = format!("{type_name}.{}", self.text(name));
        }
        let open = self.expect("{")?;
        let id = self.id(open.start)?;
        let (mut entries, mut depths) = (Vec::new(), Vec::new());
        while self.take_if("}").is_none() {
            let optional = self.take_if("?").is_some();
            let name = self.expect_name()?;
            let field = self.text(name);
            let colon = self.expect(":")?;
            let id = self.id(colon.start)?;
            let value = self.conditional(nesting + 1)?;
            depths.push(value.depth);
            let expr = EntryExpr::StructField(StructFieldExpr { field, value: value.node, optional });
            entries.push(IdedEntryExpr { id, expr });
            self.separator("}")?;
        }
        self.over(id, Expr::Struct(StructExpr { type_name, entries }), depths)
    }

    /// Goes past a comma, which may stand before the end, too.
    fn separator(&mut self, end: &str) -> Read<()> {
        if self.take_if(",").is_some() || self.is(end) { Ok(()) } else { Err(Halt::Syntax) }
    }

    pub(super) fn list(&mut self, nesting: usize) -> Read {
        let open = self.take();
        let id = self.id(open.start)?;
        let (mut elements, mut optional, mut depths) = (Vec::new(), Vec::new(), Vec::new());
        self.only_comma("]");
        while self.take_if("]").is_none() {
            if self.take_if("?").is_some() {
                optional.push(elements.len());
            }
            let element = self.conditional(nesting + 1)?;
            depths.push(element.depth);
            elements.push(element.node);
            self.separator("]")?;
        }
        self.over(id, Expr::List(ListExpr::new_with_optionals(elements, optional)), depths)
    }

    pub(super) fn map(&mut self, nesting: usize) -> Read {
        let open = self.take();
        let id = self.id(open.start)?;
        let (mut entries, mut depths) = (Vec::new(), Vec::new());
        self.only_comma("}");
        while self.take_if("}").is_none() {
            let optional = self.take_if("?").is_some();
            let key = self.conditional(nesting + 1)?;
            let colon = self.expect(":")?;
            let id = self.id(colon.start)?;
            let value = self.conditional(nesting + 1)?;
            depths.extend([key.depth, value.depth]);
            let expr = EntryExpr::MapEntry(MapEntryExpr { key: key.node, value: value.node, optional });
            entries.push(IdedEntryExpr { id, expr });
            self.separator("}")?;
        }
        self.over(id, Expr::Map(MapExpr { entries }), depths)
    }

    /// The grammar allows a comma in what is empty.
    fn only_comma(&mut self, end: &'static str) {
        if self.is(",") && self.ahead(1) == TokenKind::Sign(end) {
            self.take();
        }
    }
}
