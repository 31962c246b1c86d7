//! What rules cost at most, told by what is refused.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{DEFINITIONS, causes, create, definition, number_after};
use crate::control_plane::ControlPlane;

/// What a rule may cost for a whole object.
const COST_MAX: u64 = 10_000_000;
/// The longest list that is tried.
const ITEMS_MAX: u64 = 1 << 24;
/// How many rules are asked for at once: all together have a budget, too, which a refusal of one does not touch.
const RULES_AT_ONCE: usize = 8;

/// Records what the rules cost: a number, or the refusal if one item costs too much.
pub(super) async fn record(plane: &ControlPlane, fixture: &mut Value) -> Result<()> {
    let schema = fixture["schema"].clone();
    let Some(rows) = fixture["rules"].as_array_mut() else { return Ok(()) };
    for chunk in rows.chunks_mut(RULES_AT_ONCE) {
        let mut searches: Vec<Search> = chunk
            .iter()
            .map(|row| Search { rule: row[0].clone(), accepted: 0, refused: ITEMS_MAX + 1, told: None })
            .collect();
        while searches.iter().any(|search| search.next().is_some()) {
            let lengths: Vec<u64> = searches.iter().map(|search| search.next().unwrap_or(0)).collect();
            let refusals = refused(plane, &schema, &searches, &lengths).await?;
            for ((search, length), refusal) in searches.iter_mut().zip(lengths).zip(refusals) {
                match refusal {
                    _ if length == 0 => {}
                    Some(text) => (search.refused, search.told) = (length, Some(text)),
                    None => search.accepted = length,
                }
            }
        }
        for (row, search) in chunk.iter_mut().zip(&searches) {
            row[1] = search.outcome()?;
        }
    }
    Ok(())
}

/// The search for the shortest list of which a rule costs too much.
struct Search {
    rule: Value,
    accepted: u64,
    refused: u64,
    /// What was said at the shortest refused length.
    told: Option<String>,
}

impl Search {
    /// The length to try, until there is nothing between the accepted and the refused ones.
    fn next(&self) -> Option<u64> {
        (self.refused - self.accepted > 1).then_some(self.accepted + (self.refused - self.accepted) / 2)
    }

    fn outcome(&self) -> Result<Value> {
        let Some(told) = &self.told else { return Ok(json!(0)) };
        let Some((_, factor)) = told.split_once("factor of ") else { bail!("no factor: {told}") };
        let factor = factor.split_once('x').and_then(|(factor, _)| factor.parse::<f64>().ok());
        match factor {
            _ if self.refused == 1 => Ok(told.split(" (try").next().unwrap_or(told).into()),
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "six digits are told"
            )]
            Some(factor) => Ok(json!((factor * COST_MAX as f64 / self.refused as f64).round() as u64)),
            None => bail!("no factor: {told}"),
        }
    }
}

/// For each rule, whether a list of this length is refused, and in which words.
async fn refused(
    plane: &ControlPlane,
    schema: &Value,
    searches: &[Search],
    lengths: &[u64],
) -> Result<Vec<Option<String>>> {
    let lists = searches.iter().zip(lengths).enumerate().filter(|(_, (_, length))| **length > 0).map(
        |(index, (search, length))| {
            let mut item = schema.clone();
            item["x-kubernetes-validations"] = json!([{"rule": search.rule}]);
            (format!("r[{index}]"), json!({"type": "array", "maxItems": length, "items": item}))
        },
    );
    let properties: serde_json::Map<String, Value> =
        lists.map(|(name, list)| (name.replace(['[', ']'], ""), list)).collect();
    let spec = json!({"type": "object", "properties": properties});
    let answer = create(plane, DEFINITIONS, definition("gadget", &spec), true).await;
    if answer.code != 201 && answer.code != 422 {
        bail!("{} {}", answer.code, answer.body["message"]);
    }
    let mut refusals = vec![None; searches.len()];
    for (field, message) in causes(&answer) {
        if let (Some(index), true) =
            (number_after(&field, ".properties[r"), message.contains("estimated rule cost exceeds"))
        {
            let start = message.find("estimated rule cost").unwrap_or(0);
            refusals[index] = Some(message[start..].to_owned());
        } else if message.contains("compilation failed") {
            bail!("{field}: {message}");
        }
    }
    Ok(refusals)
}
