//! Runs every file under `scenarios/` as one test. Data in, text out: what a command says must stand under it in the file, and
//! `UPDATE_SCENARIOS=1` writes it there.
//!
//! Invariant: after every command that leaves the index fresh, an index built from nothing in another cache exports the same bytes.

mod play;
#[path = "../sandbox.rs"]
mod sandbox;
mod script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    // Hundreds of builds in this process wait for no disk.
    sextant::store::faults::disable_barriers();
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some_and(|value| value == "1");
    let mut trials = vec![Trial::test("runner", || script::check().map_err(Failed::from))];
    for file in files {
        let name = file.strip_prefix(&root).expect("below the root").with_extension("").to_string_lossy().replace('\\', "/");
        trials.push(Trial::test(name, move || run(&file, update).map_err(Failed::from)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Scenario files are the `.txt` files; the demo beside them is a tree of its own.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the scenarios are readable") {
        let path = entry.expect("the scenarios are readable").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "demo") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|suffix| suffix == "txt") {
            files.push(path);
        }
    }
}

fn run(file: &Path, update: bool) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let script = script::Script::parse(&text)?;
    let mut player = play::Player::new();
    let mut bodies = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let place = |problem: String| format!("{} (line {}): {problem}\n({})", step.head, step.line, script.title);
        let Some(output) = player.step(step).map_err(place)? else { continue };
        let have: Vec<String> = output.lines().map(|line| line.trim_end().to_owned()).collect();
        let want: Vec<String> = step.body[..step.body.len() - trailing_blanks(&step.body)].to_vec();
        // `…` alone says that this output is not what the scenario is about.
        if want == ["…"] || have == want {
            continue;
        }
        if update {
            bodies.push((index, have));
        } else {
            return Err(place(format!("the output differs\n--- expected\n{}\n--- found\n{}", want.join("\n"), have.join("\n"))));
        }
    }
    if !bodies.is_empty() {
        fs::write(file, script.with_bodies(&bodies)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn trailing_blanks(body: &[String]) -> usize {
    body.iter().rev().take_while(|line| line.trim().is_empty()).count()
}
