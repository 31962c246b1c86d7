//! Texts that tend to break things, and texts of formats.

use serde_json::Value;

/// The most characters of a text whose schema sets no limit.
const LENGTH_MAX: u64 = 300;

/// Texts that anybody may write, each with a name.
pub(crate) fn odd(schema: &Value) -> Vec<(&'static str, String)> {
    let longest = schema["maxLength"].as_u64().unwrap_or(LENGTH_MAX).min(LENGTH_MAX);
    vec![
        ("empty", String::new()),
        ("short", "c".to_owned()),
        ("long", "c".repeat(usize::try_from(longest).unwrap_or_default())),
        ("unicode", "wörld-🌍".to_owned()),
        ("metacharacters", "a b;$(id)`{{x}}'\"\\\n: #".to_owned()),
    ]
}

/// Texts that a schema must refuse, if it says something of texts.
pub(crate) fn wrong(schema: &Value) -> Vec<(&'static str, String)> {
    let repeat = |length: u64| "c".repeat(usize::try_from(length).unwrap_or_default());
    let too_long = schema["maxLength"].as_u64().map(|most| ("too-long", repeat(most.saturating_add(1).min(1 << 16))));
    let too_short =
        schema["minLength"].as_u64().filter(|least| *least > 0).map(|least| ("too-short", repeat(least - 1)));
    let pattern = schema["pattern"].is_string().then(|| ("no-match", "\u{1}~ campaign".to_owned()));
    [too_long, too_short, pattern].into_iter().flatten().collect()
}

/// A text of a format, and one that is not of it.
pub(crate) fn of_format(format: &str) -> Option<[&'static str; 2]> {
    Some(match format {
        "date-time" => ["2030-02-03T04:05:06Z", "tomorrow"],
        "date" => ["2030-02-03", "tomorrow"],
        "duration" => ["90s", "a while"],
        "ipv4" => ["192.0.2.7", "192.0.2.777"],
        "ipv6" => ["2001:db8::7", "2001:db8::g"],
        "uri" => ["https://example.com/x", "::"],
        "email" => ["ann@example.com", "ann"],
        "hostname" => ["example.com", "-"],
        "uuid" => ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7"],
        "byte" => ["Y2FtcGFpZ24=", "?"],
        "cidr" => ["192.0.2.0/24", "192.0.2.0/99"],
        _ => return None,
    })
}
