//! Calls of functions: which fit, and what they yield.

use kube_cel::cel::common::ast::{CallExpr, operators};

use super::{Walk, qualified};
use crate::cel::{
    functions::{self, Signature},
    types::Type,
};

impl Walk<'_> {
    pub(super) fn call(&mut self, id: u64, call: &mut CallExpr) -> Type {
        let args: Vec<Type> = call.args.iter_mut().map(|argument| self.visit(argument)).collect();
        let of_mutation = self.declared.makes_objects;
        let Some(target) = &mut call.target else {
            let name = call.func_name.trim_start_matches('.').to_owned();
            let Some(signatures) = functions::of_name(&name, of_mutation) else {
                return self.undeclared(id, &call.func_name);
            };
            call.func_name = name;
            return self.resolved(id, call, signatures, args);
        };
        if let Some(prefix) = qualified(target)
            && let name = format!("{}.{}", prefix.trim_start_matches('.'), call.func_name)
            && let Some(signatures) = functions::of_name(&name, of_mutation)
        {
            call.func_name = name;
            call.target = None;
            return self.resolved(id, call, signatures, args);
        }
        let target = self.visit(target);
        let Some(signatures) = functions::of_name(&call.func_name, of_mutation) else {
            return self.undeclared(id, &call.func_name);
        };
        self.resolved(id, call, signatures, std::iter::once(target).chain(args).collect())
    }

    /// The type of what the functions yield that fit a call.
    fn resolved(&mut self, id: u64, call: &CallExpr, signatures: &[Signature], args: Vec<Type>) -> Type {
        if let operators::LOGICAL_AND | operators::LOGICAL_OR = call.func_name.as_str() {
            return self.logical(call, &args);
        }
        let is_method = call.target.is_some();
        let mut result: Option<Type> = None;
        for signature in signatures.iter().filter(|signature| signature.is_method == is_method) {
            let first = self.unification.parameters(signature.parameters);
            let wanted: Vec<Type> = signature.args.iter().map(|wanted| renumbered(wanted, first)).collect();
            if wanted.len() != args.len() || !self.unification.all_fit(args.iter().zip(&wanted)) {
                continue;
            }
            let found = self.unification.substituted(&renumbered(&signature.result, first), false);
            result = Some(match result {
                Some(known) if known != Type::Dyn && known != found => Type::Dyn,
                Some(known) => known,
                None => found,
            });
        }
        result.unwrap_or_else(|| {
            self.report(id, self.no_overload(&call.func_name, is_method, &args));
            Type::Fault
        })
    }

    fn logical(&mut self, call: &CallExpr, args: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (argument, found) in call.args.iter().zip(args) {
            if !self.unification.fit(found, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, found);
                result = Type::Fault;
            }
        }
        result
    }

    fn no_overload(&self, function: &str, is_method: bool, args: &[Type]) -> String {
        let mut names = args.iter().map(|found| self.unification.substituted(found, true).to_string());
        let target = if is_method { names.next().map(|name| format!("{name}.")) } else { None };
        let args = names.collect::<Vec<_>>().join(", ");
        format!("found no matching overload for '{function}' applied to '{}({args})'", target.unwrap_or_default())
    }
}

/// A type of a signature, with its parameters as new ones.
fn renumbered(found: &Type, first: u32) -> Type {
    match found {
        Type::Parameter(number) => Type::Parameter(first + number),
        other => other.with_parts(|part| renumbered(part, first)),
    }
}
