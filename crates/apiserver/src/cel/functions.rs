//! The functions that expressions may call, as Kubernetes declares them: `cargo xtask record` writes `functions.txt`.

use std::{collections::HashMap, sync::LazyLock};

use super::types::Type;

/// One way to call a function. Its parameters of types are numbered from zero.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signature {
    /// Whether it is called on its first argument.
    pub(super) is_method: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    /// How many parameters of types it has.
    pub(super) parameters: u32,
    /// Whether only mutations may call it.
    pub(super) is_of_mutation: bool,
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let mut functions: HashMap<&str, Vec<Signature>> = HashMap::new();
    for line in include_str!("functions.txt").lines() {
        let (name, signature) = read(line).expect("the table of functions is generated");
        functions.entry(name).or_default().push(signature);
    }
    functions
});

/// The ways to call a function, in the order in which they are tried; none if there is no such function.
pub(super) fn of_name(name: &str, of_mutation: bool) -> Option<&'static [Signature]> {
    let signatures = FUNCTIONS.get(name)?;
    signatures.iter().all(|signature| of_mutation || !signature.is_of_mutation).then_some(signatures)
}

/// Reads a line such as `indexOf list(A).(A) -> int`.
fn read(line: &'static str) -> Option<(&'static str, Signature)> {
    let (is_of_mutation, line) = match line.strip_prefix("mutation ") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (name, line) = line.split_once(' ')?;
    let (call, result) = line.rsplit_once(" -> ")?;
    let mut reader = Reader { rest: call, parameters: Vec::new() };
    let mut args = Vec::new();
    let is_method = !call.starts_with('(');
    if is_method {
        args.push(reader.read()?);
        reader.rest = reader.rest.strip_prefix('.')?;
    }
    args.extend(reader.list()?);
    reader.rest = result;
    let result = reader.read()?;
    let parameters = u32::try_from(reader.parameters.len()).ok()?;
    Some((name, Signature { is_method, args, result, parameters, is_of_mutation }))
}

struct Reader {
    rest: &'static str,
    /// The names of the parameters of types.
    parameters: Vec<&'static str>,
}

impl Reader {
    fn list(&mut self) -> Option<Vec<Type>> {
        self.rest = self.rest.strip_prefix('(')?;
        let mut all = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix(')') {
                self.rest = rest;
                return Some(all);
            }
            self.rest = self.rest.strip_prefix(", ").unwrap_or(self.rest);
            all.push(self.read()?);
        }
    }

    fn read(&mut self) -> Option<Type> {
        let end = self.rest.find(['(', ')', ',']).unwrap_or(self.rest.len());
        // A target ends with a dot, and names have dots within.
        let (name, rest) = self.rest.split_at(end);
        let (name, rest) = match name.strip_suffix('.') {
            Some(name) => (name, &self.rest[name.len()..]),
            None => (name, rest),
        };
        self.rest = rest;
        Some(match name {
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "list" => Type::list(self.list()?.pop()?),
            "optional_type" => Type::optional(self.list()?.pop()?),
            "type" => Type::Kind(self.list()?.pop()?.into()),
            "map" => {
                let [keys, values] = <[Type; 2]>::try_from(self.list()?).ok()?;
                Type::map(keys, values)
            }
            name if name.len() == 1 => {
                let known = self.parameters.iter().position(|known| *known == name);
                let number = known.unwrap_or_else(|| {
                    self.parameters.push(name);
                    self.parameters.len() - 1
                });
                Type::Parameter(u32::try_from(number).ok()?)
            }
            name => Type::Named(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let check = |line, method, args: &[Type], result| {
            let (_, found) = read(line).unwrap();
            assert_eq!((found.is_method, &found.args[..], found.result), (method, args, result), "{line}");
        };
        let parameter = Type::Parameter;
        check("f () -> string", false, &[], Type::Text);
        check("f string.(int, dyn) -> bool", true, &[Type::Text, Type::Int, Type::Dyn], Type::Bool);
        check("f net.IP.() -> net.CIDR", true, &[Type::Named("net.IP")], Type::Named("net.CIDR"));
        let lists = Type::list(Type::list(parameter(0)));
        check("f list(list(T)).() -> list(T)", true, &[lists], Type::list(parameter(0)));
        let map = Type::map(parameter(0), parameter(1));
        check("f (map(K, V), K) -> optional_type(V)", false, &[map, parameter(0)], Type::optional(parameter(1)));
    }

    #[test]
    fn functions_of_mutations_are_not_for_all() {
        assert!(of_name("jsonpatch.escapeKey", false).is_none());
        assert!(of_name("jsonpatch.escapeKey", true).is_some());
        assert_eq!(of_name("size", false).map(<[_]>::len), Some(8));
        assert!(of_name("cel.bind", true).is_none());
    }
}
