//! Fixed bearer tokens from a CSV file: `token,user,uid[,"group1,group2"]`.

use std::collections::HashMap;
use std::str::FromStr;

use ring::digest;

use super::User;

/// The users of fixed tokens.
///
/// The map holds digests, so that the time of a lookup tells nothing about a token.
#[derive(Clone, Debug, Default)]
pub struct StaticTokens(HashMap<[u8; digest::SHA256_OUTPUT_LEN], User>);

/// A line of a token file that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the token file {problem}")]
pub struct StaticTokenError {
    line: usize,
    problem: &'static str,
}

impl StaticTokens {
    /// Adds a token.
    pub fn insert(&mut self, token: &str, user: User) {
        self.0.insert(key(token), user);
    }

    /// The user of a token.
    pub fn find(&self, token: &str) -> Option<&User> {
        self.0.get(&key(token))
    }
}

impl FromStr for StaticTokens {
    type Err = StaticTokenError;

    fn from_str(text: &str) -> Result<Self, StaticTokenError> {
        let mut tokens = StaticTokens::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let problem = |problem| StaticTokenError { line: index + 1, problem };
            let fields = fields(line).ok_or(problem("has a quote that does not end"))?;
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                return Err(problem("has fewer than three columns: token, user, uid"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(problem("has an empty token or user"));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
            tokens.insert(token, User { uid: uid.clone(), ..User::new(name, groups) });
        }
        Ok(tokens)
    }
}

fn key(token: &str) -> [u8; digest::SHA256_OUTPUT_LEN] {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    digest.as_ref().try_into().expect("a SHA-256 digest has its length")
}

/// The columns of a line; quotes hold a column with commas together.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut()?.push(character),
        }
    }
    (!quoted).then(|| fields.iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_from_csv() {
        let tokens: StaticTokens = "# tests\nt1,ann,u1,\"ops,system:masters\"\n\nt2,bob,\n".parse().unwrap();
        let ann = tokens.find("t1").unwrap();
        assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann", "u1"));
        assert_eq!(ann.groups, ["ops", "system:masters", "system:authenticated"]);
        assert_eq!(tokens.find("t2").unwrap().groups, ["system:authenticated"]);
        assert!(tokens.find("t3").is_none());
    }

    #[test]
    fn bad_lines_are_named() {
        let error = |text: &str| text.parse::<StaticTokens>().unwrap_err().to_string();
        assert_eq!(error("t1,ann"), "line 1 of the token file has fewer than three columns: token, user, uid");
        assert_eq!(error("t,a,u\nt1,ann,u1,\"ops"), "line 2 of the token file has a quote that does not end");
        assert_eq!(error(",ann,u1"), "line 1 of the token file has an empty token or user");
    }
}
