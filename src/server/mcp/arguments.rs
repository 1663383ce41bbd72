//! The arguments of a call, checked against the declaration of its tool.
//!
//! Must not know what a tool does with them. Invariant: what [`Arguments`] gives out is of the declared kind and within the declared bounds.

use serde_json::{Map, Value};

use super::tools::{Declaration, Kind, Parameter};

/// Arguments that fit.
#[derive(Clone, Debug)]
pub struct Arguments {
    tool: &'static Declaration,
    given: Map<String, Value>,
}

/// Why arguments do not fit, said to whoever wrote them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("`{tool}` takes no argument `{name}`; it takes {known}")]
    Unknown { tool: &'static str, name: String, known: String },
    #[error("`{tool}` needs the argument `{name}`: {expected}")]
    Missing { tool: &'static str, name: &'static str, expected: String },
    #[error("`{name}` takes {expected}")]
    Unfit { name: &'static str, expected: String },
    #[error("`root` and `scope` exclude each other; give one of them or none")]
    RootAndScope,
}

impl Arguments {
    /// Checks what a client wrote. An argument that is null counts as left out.
    ///
    /// # Errors
    /// At the first one that does not fit.
    pub fn read(tool: &'static Declaration, given: &Map<String, Value>) -> Result<Self, ArgumentError> {
        let given: Map<String, Value> =
            given.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(name) = given.keys().find(|name| tool.parameters.iter().all(|known| known.name != name.as_str())) {
            let known: Vec<String> = tool.parameters.iter().map(|known| format!("`{}`", known.name)).collect();
            // Names are shown, and no more of what may be anything.
            let name = name.chars().filter(|character| !character.is_control()).take(64).collect();
            return Err(ArgumentError::Unknown { tool: tool.name, name, known: known.join(", ") });
        }
        for parameter in tool.parameters {
            let expected = || expected(parameter.kind);
            match given.get(parameter.name) {
                Some(value) if !fits(parameter.kind, value) => {
                    return Err(ArgumentError::Unfit { name: parameter.name, expected: expected() });
                }
                None if parameter.is_required => {
                    return Err(ArgumentError::Missing { tool: tool.name, name: parameter.name, expected: expected() });
                }
                _ => {}
            }
        }
        let arguments = Self { tool, given };
        if arguments.text("root").is_some() && arguments.text("scope").is_some() {
            return Err(ArgumentError::RootAndScope);
        }
        Ok(arguments)
    }

    /// Returns a text or a word; `None` where it was left out.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).and_then(Value::as_str)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let values = self.given.get(name).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Returns a number that was given.
    pub fn given_number(&self, name: &str) -> Option<usize> {
        self.given.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
    }

    /// Returns a number, the declared one where it was left out.
    pub fn number(&self, name: &str) -> usize {
        let declared = self.tool.parameters.iter().find(|parameter| parameter.name == name);
        match (self.given_number(name), declared) {
            (Some(number), _) => number,
            (None, Some(Parameter { kind: Kind::Number { default, .. }, .. })) => *default,
            (None, _) => 0,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.given.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

fn fits(kind: Kind, value: &Value) -> bool {
    let is_text = |value: &Value, most: usize| {
        value.as_str().is_some_and(|text| !text.trim().is_empty() && text.chars().count() <= most && !text.contains('\0'))
    };
    match kind {
        Kind::Text { most } => is_text(value, most),
        Kind::Texts { most } => value.as_array().is_some_and(|values| {
            (1..=most).contains(&values.len()) && values.iter().all(|value| is_text(value, super::tools::MAX_PATH))
        }),
        Kind::Number { least, most, .. } => value.as_u64().is_some_and(|number| (least as u64..=most as u64).contains(&number)),
        Kind::Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        Kind::Flag => value.is_boolean(),
    }
}

/// Says what fits.
fn expected(kind: Kind) -> String {
    match kind {
        Kind::Text { most } => format!("a text of 1 to {most} characters that is not blank"),
        Kind::Texts { most } => format!("a list of 1 to {most} texts"),
        Kind::Number { least, most, .. } => format!("a whole number from {least} to {most}"),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("one of {}", words.join(", "))
        }
        Kind::Flag => "true or false".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::mcp::tools::declared;

    fn read(tool: &str, json: &str) -> Result<Arguments, String> {
        let given: Map<String, Value> = serde_json::from_str(json).expect("an object");
        Arguments::read(declared(tool).expect("a tool"), &given).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_that_fit() {
        let found = read("relations", r#"{"symbol":"a.b","relation":"impact","depth":3,"path":null,"source":true}"#);
        let found = found.expect("they fit");
        assert_eq!((found.text("symbol"), found.text("relation"), found.text("path")), (Some("a.b"), Some("impact"), None));
        assert_eq!((found.number("depth"), found.number("limit"), found.flag("source")), (3, 20, true));
        let found = read("tests", r#"{"paths":["a.py","b.py"]}"#).expect("they fit");
        assert_eq!(found.texts("paths"), ["a.py", "b.py"]);
    }

    #[test]
    fn arguments_that_do_not_fit_say_what_would() {
        let check = |tool, json, want: &str| assert_eq!(read(tool, json).expect_err(json), want);
        check("explore", "{}", "`explore` needs the argument `query`: a text of 1 to 8192 characters that is not blank");
        check("status", r#"{"query":"x"}"#, "`status` takes no argument `query`; it takes `root`, `scope`");
        check("explore", r#"{"query":" "}"#, "`query` takes a text of 1 to 8192 characters that is not blank");
        check("explore", r#"{"query":"x","limit":"3"}"#, "`limit` takes a whole number from 1 to 50");
        check("explore", r#"{"query":"x","limit":51}"#, "`limit` takes a whole number from 1 to 50");
        check("explore", r#"{"query":"x","limit":1.5}"#, "`limit` takes a whole number from 1 to 50");
        check("explore", r#"{"query":"x","source":1}"#, "`source` takes true or false");
        check("relations", r#"{"symbol":"x","relation":"all"}"#, "`relation` takes one of \"callers\", \"callees\", \"impact\"");
        check("tests", r#"{"paths":[]}"#, "`paths` takes a list of 1 to 100 texts");
        check("tests", r#"{"paths":"a"}"#, "`paths` takes a list of 1 to 100 texts");
        check("status", r#"{"root":"/a","scope":"b"}"#, "`root` and `scope` exclude each other; give one of them or none");
    }
}
