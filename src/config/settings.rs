//! Every key of a configuration with its value, and where that comes from.
//!
//! Must not know what a key means. Invariant: the lines of all settings are a configuration file that gives the same configuration.

use std::path::Path;

use serde::Serialize;
use toml::{Table, Value};

use super::{Config, ConfigError, Environment, text_of};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", content = "name", rename_all = "snake_case")]
pub enum Origin {
    Default,
    /// The configuration file.
    File,
    /// This variable.
    Environment(&'static str),
    /// Where the command was started.
    CurrentDirectory,
    /// This flag of the command line.
    Flag(&'static str),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// As in `limits.max_files`.
    pub key: String,
    pub value: Value,
    #[serde(flatten)]
    pub origin: Origin,
}

impl Setting {
    /// Returns the line of a configuration file that sets it.
    pub fn line(&self) -> String {
        format!("{} = {}", self.key, inline(&self.value))
    }
}

impl Config {
    /// Reads the configuration as [`Self::load`] does. Returns it with all of its settings, those that are not set at all left out.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn settings(file: Option<&Path>, environment: &Environment) -> Result<(Self, Vec<Setting>), ConfigError> {
        let (config, written) = match text_of(file, environment)? {
            Some((name, text)) => {
                let config = Self::parse(&text, &name, environment)?;
                // What the configuration was read from is a table.
                (config, text.parse::<Table>().unwrap_or_default())
            }
            None => (Self::load(None, environment)?, Table::new()),
        };
        let all = Table::try_from(&config).unwrap_or_default();
        let mut settings = Vec::new();
        gather(&all, Some(&written), String::new(), &mut settings);
        if let Some(place) = settings.iter_mut().find(|setting| setting.key == "cache_dir")
            && place.origin == Origin::Default
        {
            let name = if environment.xdg_cache_home.is_some() { "XDG_CACHE_HOME" } else { "HOME" };
            place.origin = Origin::Environment(name);
        }
        Ok((config, settings))
    }
}

/// Adds the keys of a table, those of tables within it by their whole names.
fn gather(all: &Table, written: Option<&Table>, above: String, settings: &mut Vec<Setting>) {
    // A key of the whole stands before any table.
    let (tables, values): (Vec<_>, Vec<_>) = all.iter().partition(|(_, value)| value.is_table());
    for (key, value) in values.into_iter().chain(tables) {
        let whole = format!("{above}{}", quoted(key));
        let there = written.and_then(|table| table.get(key));
        match value {
            Value::Table(inner) => gather(inner, there.and_then(Value::as_table), format!("{whole}."), settings),
            value => {
                let origin = if there.is_some() { Origin::File } else { Origin::Default };
                settings.push(Setting { key: whole, value: value.clone(), origin });
            }
        }
    }
}

fn quoted(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_bare { key.to_owned() } else { Value::from(key).to_string() }
}

/// Returns a value in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let fields: Vec<String> = table.iter().map(|(key, value)| format!("{} = {}", quoted(key), inline(value))).collect();
            if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        // What holds a line end would be written over several lines.
        Value::String(text) if text.contains(['\n', '\r']) => serde_json::to_string(text).unwrap_or_default(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_key_and_where_it_comes_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = Environment {
            current_dir: folder.path().to_owned(),
            xdg_cache_home: Some(PathBuf::from("/c")),
            ..Environment::default()
        };
        let text = "enabled = false\n[limits]\nmax_files = 7\n[daemon]\nidle_minutes = 1.5\n[scopes.\"a.b\"]\nroot = \"/r\"\n\
                    exclude = [\"x\\ty\", \"z\"]\n";
        std::fs::write(folder.path().join("s.toml"), text).expect("written");
        let (config, settings) = Config::settings(Some(Path::new("s.toml")), &environment).expect("valid");
        let find = |key: &str| {
            let setting = settings.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key} in {settings:?}"));
            (setting.line(), setting.origin)
        };
        let line = |text: &str, origin| (text.to_owned(), origin);
        assert_eq!(find("enabled"), line("enabled = false", Origin::File));
        assert_eq!(find("cache_dir"), line("cache_dir = \"/c/sextant\"", Origin::Environment("XDG_CACHE_HOME")));
        assert_eq!(find("limits.max_files"), line("limits.max_files = 7", Origin::File));
        assert_eq!(find("limits.query_seconds"), line("limits.query_seconds = 5", Origin::Default));
        assert_eq!(find("daemon.idle_minutes"), line("daemon.idle_minutes = 1.5", Origin::File));
        assert_eq!(find("daemon.unload_minutes"), line("daemon.unload_minutes = 10.0", Origin::Default));
        assert_eq!(find("scopes.\"a.b\".on_stale"), line("scopes.\"a.b\".on_stale = \"refuse\"", Origin::Default));
        // The lines are a file that says the same.
        let again: String = settings.iter().map(|setting| setting.line() + "\n").collect();
        assert_eq!(Config::parse(&again, "again", &environment).expect("valid"), config, "{again}");
        let (config, settings) = Config::settings(None, &environment).expect("valid");
        assert!(settings.iter().all(|setting| setting.origin != Origin::File), "{settings:?}");
        let again: String = settings.iter().map(|setting| setting.line() + "\n").collect();
        assert_eq!(Config::parse(&again, "again", &environment).expect("valid"), config, "{again}");
    }
}
