//! Values that are written into JSON files of others, on one line or on many.
//!
//! Must not know what a value means. Invariant: the order of the members is the order they were given in, and a value written on many
//! lines has a line break in it wherever an object is.

/// A value to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    Text(String),
    Number(u32),
    Truth(bool),
    List(Vec<Written>),
    Object(Vec<(&'static str, Written)>),
}

/// How a file sets lines.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'t> {
    pub newline: &'t str,
    /// What one level is set in by.
    pub step: &'t str,
}

impl Written {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Puts the value into objects, the outermost key first.
    pub fn within(self, keys: &[&'static str]) -> Self {
        keys.iter().rev().fold(self, |value, key| Self::Object(vec![(key, value)]))
    }

    /// Writes the value on one line.
    pub fn on_one_line(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::on_one_line).collect();
                format!("[{}]", values.join(", "))
            }
            Self::Object(members) if members.is_empty() => "{}".to_owned(),
            Self::Object(members) => {
                let members: Vec<String> = members.iter().map(|(key, value)| member(key, &value.on_one_line())).collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }

    /// Writes the value on as many lines as it has members; `indent` is that of the line it begins on. Lists of plain values stay on one.
    pub fn on_lines(&self, indent: &str, layout: Layout<'_>) -> String {
        let Layout { newline, step } = layout;
        let inner = format!("{indent}{step}");
        let parts: Vec<String> = match self {
            Self::List(values) if values.iter().any(|value| matches!(value, Self::Object(_) | Self::List(_))) => {
                values.iter().map(|value| value.on_lines(&inner, layout)).collect()
            }
            Self::Object(members) if !members.is_empty() => {
                members.iter().map(|(key, value)| member(key, &value.on_lines(&inner, layout))).collect()
            }
            plain => return plain.on_one_line(),
        };
        let (open, close) = if matches!(self, Self::List(_)) { ('[', ']') } else { ('{', '}') };
        let parts: Vec<String> = parts.iter().map(|part| format!("{newline}{inner}{part}")).collect();
        format!("{open}{}{newline}{indent}{close}", parts.join(","))
    }
}

/// Writes one member of an object.
pub fn member(key: &str, value: &str) -> String {
    format!("{}: {value}", quoted(key))
}

/// Writes a string literal.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
