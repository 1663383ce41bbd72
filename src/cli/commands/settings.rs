//! `config show`: every key of the configuration with its value and where that comes from.
//!
//! Must not know what a key means. Invariant: the text is a configuration file that says the same.

use serde::Serialize;

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Stop, World};
use crate::config::{Config, Origin, Selection, Setting};
use crate::render::text::clean;

use super::status::json;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'s> {
    file: Option<Named>,
    /// The scope that a command here is about; null where none can be chosen.
    scope: Option<Chosen>,
    settings: &'s [Setting],
}

/// The configuration file, and who names it.
#[derive(Serialize)]
struct Named {
    path: String,
    #[serde(flatten)]
    origin: Origin,
}

#[derive(Serialize)]
struct Chosen {
    id: String,
    root: String,
    /// Whether it stands in no configuration file.
    implicit: bool,
    #[serde(flatten)]
    origin: Origin,
}

pub fn show(global: &Global, with_origin: bool, world: &mut World<'_>) -> Result<Exit, Stop> {
    let environment = &world.environment;
    let (config, settings) =
        Config::settings(global.config.as_deref(), environment).map_err(|error| Failure::of_config(&error))?;
    let named = |path: &std::path::Path, origin| Named { path: environment.current_dir.join(path).display().to_string(), origin };
    let file = match (&global.config, &environment.config) {
        (Some(path), _) => Some(named(path, Origin::Flag("--config"))),
        (None, Some(path)) => Some(named(path, Origin::Environment("SEXTANT_CONFIG"))),
        (None, None) => None,
    };
    let selection = Selection { root: global.root.clone(), scope: global.scope.clone() };
    let chosen = config.scope(&selection, environment);
    let unchosen = chosen.as_ref().err().map(|error| crate::model::sentence(error));
    let scope = chosen.ok().map(|scope| Chosen {
        id: scope.id,
        root: scope.root.display().to_string(),
        implicit: scope.implicit,
        origin: match (&global.scope, &global.root) {
            (Some(_), _) => Origin::Flag("--scope"),
            (None, Some(_)) => Origin::Flag("--root"),
            (None, None) => Origin::CurrentDirectory,
        },
    });
    if global.json {
        writeln!(world.out, "{}", json(&Report { file, scope, settings: &settings }))?;
        return Ok(Exit::Answered);
    }
    let mut text = String::new();
    if !global.quiet {
        match file {
            Some(file) => text.push_str(&format!("# file: {} ({})\n", clean(&file.path), said(file.origin))),
            None => text.push_str("# file: none; name one by --config or SEXTANT_CONFIG\n"),
        }
        match (scope, unchosen) {
            (Some(scope), _) => {
                text.push_str(&format!("# scope: {} of {} ({})\n", clean(&scope.id), clean(&scope.root), said(scope.origin)));
            }
            (None, why) => text.push_str(&format!("# scope: none; {}\n", clean(&why.unwrap_or_default()))),
        }
    }
    let width = settings.iter().map(|setting| setting.line().chars().count()).max().unwrap_or_default().min(60);
    for setting in &settings {
        let line = setting.line();
        if with_origin {
            text.push_str(&format!("{line:width$}  # {}\n", said(setting.origin)));
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    world.out.write_all(text.as_bytes())?;
    Ok(Exit::Answered)
}

fn said(origin: Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File => "file".to_owned(),
        Origin::Environment(name) => format!("environment: {name}"),
        Origin::CurrentDirectory => "current directory".to_owned(),
        Origin::Flag(name) => format!("flag: {name}"),
    }
}
