//! What names stand for, and messages that are made of named types.

use std::{collections::BTreeMap, sync::Arc};

use kube_cel::cel::common::ast::{EntryExpr, StructExpr};

use super::Walk;
use crate::cel::types::{Fields, Structure, Type};

/// The type of the operations of a patch.
const PATCH: &str = "JSONPatch";

impl Walk<'_> {
    /// The type of a variable or of a name of a type.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Type> {
        if let Some((_, found)) = self.bound.iter().rev().find(|(known, _)| known == name) {
            return Some(found.clone());
        }
        if let Some((_, found)) = self.declared.names.iter().find(|(known, _)| *known == name) {
            self.uses_old_self |= name == "oldSelf";
            return Some(found.clone());
        }
        let of = match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "string" => Type::Text,
            "null_type" => Type::Null,
            "type" => Type::Kind(Arc::new(Type::Dyn)),
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "optional_type" => Type::optional(Type::Dyn),
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "net.IP" => Type::Named("net.IP"),
            "net.CIDR" => Type::Named("net.CIDR"),
            _ => Type::Object(self.made(name)?),
        };
        Some(Type::Kind(Arc::new(of)))
    }

    /// What a mutation can make: an object or a part of one, or an operation of a patch.
    fn made(&self, name: &str) -> Option<Arc<Structure>> {
        if !self.declared.makes_objects {
            return None;
        }
        let fields = match name {
            PATCH => {
                let texts = ["op", "path", "from"].map(|field| (field.to_owned(), Type::Text));
                Fields::Listed(texts.into_iter().chain([("value".to_owned(), Type::Dyn)]).collect())
            }
            "Object" => Fields::Any,
            name if name.starts_with("Object.") => Fields::Any,
            _ => return None,
        };
        Some(Arc::new(Structure { name: name.to_owned(), fields }))
    }

    pub(super) fn message(&mut self, id: u64, message: &mut StructExpr) -> Type {
        let name = message.type_name.trim_start_matches('.').to_owned();
        let structure = match self.lookup(&name) {
            Some(Type::Kind(found)) => match &*found {
                Type::Object(structure) => Arc::clone(structure),
                other => {
                    self.report(id, format!("'{}' is not a message type", other.result_name()));
                    let none = Structure { name, fields: Fields::Listed(BTreeMap::new()) };
                    self.fields(&none, message);
                    return Type::Fault;
                }
            },
            Some(other) => {
                self.report(id, format!("'{}' is not a type", other.result_name()));
                return Type::Fault;
            }
            None => return self.undeclared(id, &message.type_name),
        };
        message.type_name.clone_from(&structure.name);
        self.fields(&structure, message);
        Type::Object(structure)
    }

    fn fields(&mut self, structure: &Structure, message: &mut StructExpr) {
        for entry in &mut message.entries {
            let EntryExpr::StructField(field) = &mut entry.expr else { continue };
            let found = self.entry(&mut field.value, field.optional);
            let name = &field.field;
            let fault = match structure.field(name) {
                Some(wanted) if self.unification.fit(&wanted, &found) => continue,
                Some(wanted) => format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'"),
                // Upstream's patches have all fields, those without a type included.
                None if structure.name == PATCH => {
                    format!("expected type of field '{name}' is '' but provided type is '{found}'")
                }
                None => format!("undefined field '{name}'"),
            };
            self.report(entry.id, fault);
        }
    }
}
