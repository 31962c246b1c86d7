//! Operands with operators between them.

use kube_cel::cel::common::ast::operators;

use super::{Halt, Parser, Part, Read, TokenKind};

/// Operators that group to the left, those first that bind their operands most.
const GROUPING: [&[(&str, &str)]; 3] = [
    &[("*", operators::MULTIPLY), ("/", operators::DIVIDE), ("%", operators::MODULO)],
    &[("+", operators::ADD), ("-", operators::SUBSTRACT)],
    &[
        ("<", operators::LESS),
        ("<=", operators::LESS_EQUALS),
        (">=", operators::GREATER_EQUALS),
        (">", operators::GREATER),
        ("==", operators::EQUALS),
        ("!=", operators::NOT_EQUALS),
        ("in", operators::IN),
    ],
];

/// Operators, and the numbers of their nodes.
type Signs = Vec<(&'static str, u64)>;

impl Parser {
    /// Operands with operators between them. They are read flat and grouped afterwards, so that brackets in brackets need
    /// little of the stack.
    pub(super) fn operation(&mut self, nesting: usize) -> Read {
        let (mut operands, mut signs) = (vec![self.unary(nesting)?], Vec::new());
        while let TokenKind::Sign(sign) = self.kind()
            && (matches!(sign, "||" | "&&")
                || GROUPING.iter().flat_map(|level| level.iter()).any(|(known, _)| *known == sign))
        {
            let place = self.take().start;
            signs.push((sign, self.id(place)?));
            operands.push(self.unary(nesting)?);
        }
        for level in GROUPING {
            (operands, signs) = self.grouped(level, operands, signs)?;
        }
        for (sign, operator) in [("&&", operators::LOGICAL_AND), ("||", operators::LOGICAL_OR)] {
            (operands, signs) = self.logical(sign, operator, operands, signs)?;
        }
        operands.pop().ok_or(Halt::Syntax)
    }

    /// Groups what stands between operators of a level to the left.
    fn grouped(&mut self, level: &[(&str, &str)], operands: Vec<Part>, signs: Signs) -> Read<(Vec<Part>, Signs)> {
        let mut operands = operands.into_iter();
        let (mut left, mut others): (Vec<Part>, Signs) = (operands.by_ref().take(1).collect(), Vec::new());
        for ((sign, id), right) in signs.into_iter().zip(operands) {
            let operator = level.iter().find(|(known, _)| *known == sign).map(|(_, operator)| *operator);
            match (operator, left.pop()) {
                (Some(operator), Some(before)) => left.push(self.call(id, operator, None, vec![before, right])?),
                (_, before) => {
                    left.extend(before.into_iter().chain([right]));
                    others.push((sign, id));
                }
            }
        }
        Ok((left, others))
    }

    /// Groups what stands between logical operators, as balanced trees.
    fn logical(&mut self, sign: &str, operator: &str, operands: Vec<Part>, signs: Signs) -> Read<(Vec<Part>, Signs)> {
        let mut operands = operands.into_iter();
        let (mut done, mut others) = (Vec::new(), Vec::new());
        let (mut terms, mut ids): (Vec<Option<Part>>, Vec<u64>) =
            (operands.by_ref().take(1).map(Some).collect(), Vec::new());
        for ((found, id), right) in signs.into_iter().zip(operands) {
            if found == sign {
                ids.push(id);
            } else {
                done.push(self.balanced(operator, &mut terms, &ids)?);
                others.push((found, id));
                terms.clear();
                ids.clear();
            }
            terms.push(Some(right));
        }
        done.push(self.balanced(operator, &mut terms, &ids)?);
        Ok((done, others))
    }

    fn balanced(&mut self, operator: &str, terms: &mut [Option<Part>], ids: &[u64]) -> Read {
        if ids.is_empty() {
            return terms[0].take().ok_or(Halt::Syntax);
        }
        let middle = ids.len() / 2;
        let (left_terms, right_terms) = terms.split_at_mut(middle + 1);
        let left = self.balanced(operator, left_terms, &ids[..middle])?;
        let right = self.balanced(operator, right_terms, &ids[middle + 1..])?;
        self.call(ids[middle], operator, None, vec![left, right])
    }

    fn unary(&mut self, nesting: usize) -> Read {
        let is_number = matches!(self.ahead(1), TokenKind::Int | TokenKind::Double);
        let (sign, operator) = match self.kind() {
            TokenKind::Sign("!") => ("!", operators::LOGICAL_NOT),
            TokenKind::Sign("-") if !is_number => ("-", operators::NEGATE),
            _ => return self.member(nesting),
        };
        let first = self.take();
        let mut count = 1;
        while self.take_if(sign).is_some() {
            count += 1;
        }
        if count % 2 == 0 {
            return self.member(nesting);
        }
        let id = self.id(first.start)?;
        let operand = self.member(nesting)?;
        self.call(id, operator, None, vec![operand])
    }
}
