//! What becomes of rules of custom kinds: whether they compile, and what they say of an object.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{DEFINITIONS, causes, create, definition, detail, number_after, until};
use crate::control_plane::ControlPlane;

/// How many rules a definition has: those of one definition have a budget together.
const RULES_AT_ONCE: usize = 12;

/// Records the rules: null beside one that compiles and holds, `false` beside one that does not hold, otherwise what is
/// wrong.
pub(super) async fn record(plane: &ControlPlane, fixture: &mut Value) -> Result<()> {
    let (schema, object) = (fixture["schema"].clone(), fixture["object"].clone());
    let Some(rows) = fixture["rules"].as_array_mut() else { return Ok(()) };
    for (number, chunk) in rows.chunks_mut(RULES_AT_ONCE).enumerate() {
        let rules = Rules { schema: &schema, kind: format!("widget{number}") };
        rules.compile(plane, chunk).await?;
        rules.evaluate(plane, chunk, &object).await?;
    }
    Ok(())
}

struct Rules<'a> {
    schema: &'a Value,
    kind: String,
}

impl Rules<'_> {
    /// A definition with the rules of which nothing is known to be wrong.
    fn definition(&self, rows: &[Value]) -> Value {
        let good = rows.iter().enumerate().filter(|(_, row)| row[1].is_null());
        let mut spec = self.schema.clone();
        spec["x-kubernetes-validations"] =
            good.map(|(index, row)| json!({"rule": row[0], "message": format!("<{index}>")})).collect();
        definition(&self.kind, &spec)
    }

    async fn compile(&self, plane: &ControlPlane, rows: &mut [Value]) -> Result<()> {
        rows.iter_mut().for_each(|row| row[1] = Value::Null);
        let answer = create(plane, DEFINITIONS, self.definition(rows), true).await;
        if answer.code != 422 && answer.code != 201 {
            bail!("{} {}", answer.code, answer.body["message"]);
        }
        for (field, message) in causes(&answer) {
            if let (Some(index), false) =
                (number_after(&field, "x-kubernetes-validations["), message.contains("contributed"))
            {
                rows[index][1] = unnumbered(detail(&message)).into();
            }
        }
        Ok(())
    }

    async fn evaluate(&self, plane: &ControlPlane, rows: &mut [Value], object: &Value) -> Result<()> {
        let answer = create(plane, DEFINITIONS, self.definition(rows), false).await;
        if answer.code != 201 {
            bail!("the good rules were refused: {} {}", answer.code, answer.body["message"]);
        }
        let path = format!("/apis/cel.example.com/v1/{}s", self.kind);
        until(plane, &path, |answer| answer.code == 200).await?;
        let object = json!({"apiVersion": "cel.example.com/v1", "kind": self.kind.to_uppercase(),
            "metadata": {"name": "a"}, "spec": object});
        for (_, message) in causes(&create(plane, &path, object, true).await) {
            let index = message.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')?.0.parse::<usize>().ok());
            let Some(row) = index.and_then(|index| rows.get_mut(index)) else { bail!("whose is {message:?}?") };
            let failed = message.rsplit_once(" evaluating rule: ").or_else(|| message.rsplit_once(" for rule: "));
            row[1] = match failed.and_then(|(words, _)| words.split_once(": ")) {
                Some((_, words)) => detail_of_evaluation(words).into(),
                None => false.into(),
            };
        }
        Ok(())
    }
}

/// What comes after the value that an error is about.
fn detail_of_evaluation(words: &str) -> &str {
    words.rsplit_once("}: ").map_or(words, |(_, rest)| rest).trim_start_matches("\"object\": ")
}

/// The type of `self` gets another number each time.
fn unnumbered(message: &str) -> String {
    let mut parts = message.split("selfType");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str("selfType");
        all.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    all
}
