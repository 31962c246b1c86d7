//! Whether a text fits what it is formatted with, told before it runs.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr},
};

use super::{check::Checked, types::Type};

/// What does not fit in a format: the number of the node that is to blame, and why. `call` stands for the whole.
pub(super) fn problem(format: &str, args: &[IdedExpr], call: u64, checked: &Checked) -> Option<(u64, String)> {
    let mut letters = format.chars().peekable();
    let mut used = 0;
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.peek() {
            Some('%') => {
                letters.next();
                continue;
            }
            None => return Some((call, "unexpected end of string".to_owned())),
            Some(_) => {}
        }
        let Some(argument) = args.get(used) else { return Some((call, format!("index {used} out of range"))) };
        if letters.next_if_eq(&'.').is_some() {
            while letters.next_if(char::is_ascii_digit).is_some() {}
        }
        let Some(clause) = letters.next() else {
            let why = "could not parse formatting clause: error while parsing precision: could not find end of \
                       precision specifier";
            return Some((call, why.to_owned()));
        };
        match fits(clause, argument, checked) {
            None => {
                let why = format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
                return Some((call, why));
            }
            Some(Err((id, why))) => return Some((id, format!("error during formatting: {why}"))),
            Some(Ok(())) => used += 1,
        }
    }
    let more = args.len() > used;
    let why = || format!("too many arguments supplied to string.format (expected {used}, got {})", args.len());
    more.then(|| (call, why()))
}

type Fit = Result<(), (u64, String)>;

/// Whether an argument fits a clause; `None` if there is no such clause.
fn fits(clause: char, argument: &IdedExpr, checked: &Checked) -> Option<Fit> {
    let found = checked.of(argument);
    let (fits, rule) = match clause {
        's' => return Some(text(argument, checked)),
        'd' => (matches!(found, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
        'f' => (matches!(found, Type::Double | Type::Text), "fixed-point clause can only be used on doubles"),
        'e' => (matches!(found, Type::Double | Type::Text), "scientific clause can only be used on doubles"),
        'b' => {
            (matches!(found, Type::Int | Type::Uint | Type::Bool), "only integers and bools can be formatted as binary")
        }
        'x' | 'X' => (
            matches!(found, Type::Int | Type::Uint | Type::Text | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        'o' => (matches!(found, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        _ => return None,
    };
    let fits = fits || *found == Type::Dyn;
    Some(if fits { Ok(()) } else { Err((argument.id, format!("{rule}, was given {}", plain_name(found)))) })
}

fn text(node: &IdedExpr, checked: &Checked) -> Fit {
    let found = checked.of(node);
    if matches!(found, Type::Object(_) | Type::Named(_) | Type::Optional(_)) {
        let why = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                   durations, and timestamps";
        return Err((node.id, format!("{why}, was given {}", plain_name(found))));
    }
    match &node.expr {
        Expr::List(list) => list.elements.iter().try_for_each(|element| text(element, checked)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => text(&entry.key, checked).and_then(|()| text(&entry.value, checked)),
            EntryExpr::StructField(_) => Ok(()),
        }),
        _ => Ok(()),
    }
}

/// The name of a type without its parts.
fn plain_name(found: &Type) -> String {
    let name = found.result_name();
    name.split('(').next().unwrap_or_default().to_owned()
}
