//! `completions` and `man`: the command line described for shells and for `man`, made from the very tree that parses it.
//!
//! Must not know what a command does. Invariant: what is hidden in the help is hidden here.

use std::io;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::arguments::Arguments;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Stop, World};

const PROGRAM: &str = "sextant";

/// Writes what makes a shell complete command lines.
pub fn complete(shell: Shell, world: &mut World<'_>) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(Arguments::command()), PROGRAM, &mut script);
    world.out.write_all(&script)?;
    Ok(Exit::Answered)
}

/// Writes the manual page of the program, or of one of its commands.
pub fn page(names: &[String], world: &mut World<'_>) -> Result<Exit, Stop> {
    let mut command = visible(Arguments::command());
    command.build();
    let mut title = PROGRAM.to_owned();
    for name in names {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| {
            Failure::usage(format!("`{title}` has no command `{}`", crate::render::text::clean(name)))
                .advising(format!("see `{} --help`", title))
        })?;
        title = format!("{title} {name}");
    }
    let mut page = Vec::new();
    let drawn: io::Result<()> =
        clap_mangen::Man::new(command.display_name(title.clone())).title(title.replace(' ', "-")).render(&mut page);
    drawn?;
    world.out.write_all(&page)?;
    Ok(Exit::Answered)
}

/// Returns the tree without what is hidden in it.
fn visible(command: clap::Command) -> clap::Command {
    let mut shown = clap::Command::default().name(PROGRAM);
    shown = shown.version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(after) = command.get_after_help() {
        shown = shown.after_help(after.clone());
    }
    shown = shown.args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned());
    shown.subcommands(command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned())
}
