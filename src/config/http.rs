//! Who may ask over HTTP: names, pages and tokens.
//!
//! Must not know a request. Invariant: a token is known by its digest alone, and opens something.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::ContentHash;

use super::{ConfigError, MAX_SECONDS};

/// Who may ask over HTTP, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// How long the head of a request may take to arrive, and its body.
    pub patience_seconds: u64,
    /// Names by which the service may be called beside its address and those of the loopback.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask, as `https://host:port`; none may else.
    pub origins: Vec<String>,
    /// Those who may ask. With none, whoever reaches the loopback may read, and nobody may sync.
    pub tokens: Vec<Token>,
}

/// A bearer token: what it must hash to, and what it opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// For people who read the file.
    pub name: Option<String>,
    #[serde(deserialize_with = "digest")]
    pub sha256: ContentHash,
    /// Names of scopes; `*` is every one.
    pub scopes: Vec<String>,
    pub rights: Vec<Right>,
}

/// What a token allows in its scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Right {
    /// Questions and the status.
    #[serde(rename = "scope.read")]
    ScopeRead,
    /// Syncs.
    #[serde(rename = "code.manage")]
    CodeManage,
}

impl Token {
    /// Returns whether it allows something in a scope.
    pub fn allows(&self, scope: &str, right: Right) -> bool {
        self.rights.contains(&right) && self.scopes.iter().any(|named| named == "*" || named == scope)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self { patience_seconds: 10, hosts: Vec::new(), origins: Vec::new(), tokens: Vec::new() }
    }
}

impl Http {
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience_seconds)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_SECONDS).contains(&self.patience_seconds) {
            let problem = format!("must be from 1 to {MAX_SECONDS}");
            return Err(ConfigError::Invalid { key: "http.patience_seconds".to_owned(), problem });
        }
        for (key, values) in [("hosts", &self.hosts), ("origins", &self.origins)] {
            if values.iter().any(|value| value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic())) {
                let problem = "holds what no client sends: write visible ASCII characters only".to_owned();
                return Err(ConfigError::Invalid { key: format!("http.{key}"), problem });
            }
        }
        for (number, token) in self.tokens.iter().enumerate() {
            let name = token.name.clone().unwrap_or_else(|| (number + 1).to_string());
            let invalid =
                |problem: &str| ConfigError::Invalid { key: format!("http.tokens ({name})"), problem: problem.to_owned() };
            if self.tokens[..number].iter().any(|other| other.sha256 == token.sha256) {
                return Err(invalid("is there twice; one token stands in one place"));
            }
            if token.scopes.is_empty() || token.rights.is_empty() {
                return Err(invalid("opens nothing: name `scopes` and `rights`"));
            }
        }
        Ok(())
    }
}

fn digest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ContentHash, D::Error> {
    let text = String::deserialize(deserializer)?;
    // The text itself may be a secret that was put into the wrong place.
    ContentHash::parse(&text).ok_or_else(|| serde::de::Error::custom("must be 64 lower-case hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Environment};

    #[test]
    fn what_can_be_used() {
        let check = |text: &str, want: Result<usize, &str>| {
            let text = text.replace("$ONE", &"1".repeat(64)).replace("$TWO", &"2".repeat(64));
            let environment = Environment { home: Some("/nonexistent".into()), ..Environment::default() };
            let found = Config::parse(&text, "sextant.toml", &environment).map(|config| config.http.tokens.len());
            match (found.map_err(|error| error.to_string()), want) {
                (Ok(found), Ok(want)) => assert_eq!(found, want, "{text}"),
                (Err(error), Err(want)) => assert!(error.contains(want), "{text}\n{error}"),
                (found, want) => panic!("{text} came to {found:?} and not {want:?}"),
            }
        };
        let token = |more: &str| format!("[[http.tokens]]\nscopes = [\"demo\"]\nrights = [\"scope.read\"]\n{more}\n");
        let (one, two) = (token("sha256 = \"$ONE\""), token("sha256 = \"$TWO\"\nname = \"two\""));
        check("", Ok(0));
        check("[http]\npatience_seconds = 3\nhosts = [\"a.example.org\"]\norigins = [\"https://a.example.org\"]", Ok(0));
        check(&format!("{one}{two}"), Ok(2));
        check(&format!("{one}{two}{two}"), Err("`http.tokens (two)` is there twice"));
        check(&token("sha256 = \"secret\""), Err("must be 64 lower-case hexadecimal digits"));
        check(&token("").replace("scope.read", "scope.write"), Err("unknown variant `scope.write`"));
        check(&token(""), Err("missing field `sha256`"));
        check(&one.replace("[\"demo\"]", "[]"), Err("`http.tokens (1)` opens nothing"));
        check(&one.replace("[\"scope.read\"]", "[]"), Err("`http.tokens (1)` opens nothing"));
        check(&token("sha256 = \"$ONE\"\ntoken = \"x\""), Err("unknown field `token`"));
        check("[http]\nhosts = [\"a b\"]", Err("`http.hosts` holds what no client sends"));
        check("[http]\norigins = [\"\"]", Err("`http.origins` holds what no client sends"));
        check("[http]\npatience_seconds = 0", Err("`http.patience_seconds` must be from 1 to 1000000"));
    }
}
