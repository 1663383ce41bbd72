//! Random stories of edits: after each edit, what the incremental index says equals what a clean build says.
//!
//! A database that is blinded to one kind of change must be found out by the same stories.
//!
//! `--sequences N` plays as many (40 unless said), `--edits N` makes them longer (8 unless said), `--from SEED` begins elsewhere,
//! `--seed S` plays one alone and `--language NAME` tells all in one language (or `mixed`) instead of each in turn. A failure is shortened
//! and told with the words that play it again. In fresh processes a database is blinded in Python alone, and in every language with
//! `--everywhere`, which takes some minutes more.
//!
//! Invariant: a run with the same words plays the same stories.

mod dice;
mod ecmascript;
mod go;
mod hints;
mod play;
mod python;
#[path = "../sandbox.rs"]
mod sandbox;
mod sequence;
mod shrink;
mod speech;

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};

use sextant::analysis::{Blindness, blind};

use play::{Difference, Played, play};
use sequence::Sequence;
use speech::SPEECHES;

/// What the command line chose.
#[derive(Clone, Debug)]
struct Choice {
    sequences: u64,
    edits: usize,
    from: u64,
    seed: Option<u64>,
    language: Option<&'static str>,
}

impl Choice {
    fn story(&self, seed: u64, fresh: bool) -> Sequence {
        let made = sequence::make(self.language.unwrap_or_else(|| speech::name_of_cast(seed)), seed, self.edits);
        Sequence { fresh, ..made }
    }
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    // A test of thousands of builds waits for no disk.
    sextant::store::faults::disable_barriers();
    if let [_, blinded, language, name, keeper] = &words[..]
        && blinded == BLINDED
    {
        return find_out(language, name, keeper == FRESH);
    }
    let mut word = |name: &str| {
        let at = words.iter().position(|word| word == name).filter(|at| at + 1 < words.len())?;
        words.drain(at..at + 2).next_back()
    };
    let mut number = |name: &str| word(name).and_then(|value| value.parse::<u64>().ok());
    let (sequences, edits, from, seed) = (number("--sequences"), number("--edits"), number("--from"), number("--seed"));
    let language = word("--language");
    let everywhere = words.iter().position(|word| word == "--everywhere").map(|at| words.remove(at)).is_some();
    let known = SPEECHES.iter().map(|speech| speech.name).chain([speech::MIXED]);
    let language =
        language.map(|asked| known.clone().find(|name| *name == asked).unwrap_or_else(|| panic!("no language {asked}")));
    let edits = edits.and_then(|edits| usize::try_from(edits).ok()).unwrap_or(8);
    let choice = Choice { sequences: sequences.unwrap_or(40), edits, from: from.unwrap_or(0), seed, language };
    let mut trials = Vec::new();
    match choice.seed {
        Some(seed) => trials.push(Trial::test(format!("seed_{seed}"), move || one(&choice, seed))),
        None => {
            let again = choice.clone();
            trials.push(Trial::test("incremental_equals_clean", move || many(&choice, false)));
            trials.push(Trial::test("incremental_in_fresh_processes_equals_clean", move || many(&again, true)));
            for (language, kinds) in DEPENDENCIES {
                for kind in *kinds {
                    let name = name_of(*kind);
                    let blinded = format!("blinded_to_{name}_in_{language}");
                    if (everywhere || *language == "python") && !UNSEEN_IN_FRESH_PROCESSES.contains(&(language, *kind)) {
                        trials.push(Trial::test(format!("{blinded}_in_fresh_processes"), move || {
                            is_found_out(language, name, true)
                        }));
                    }
                    trials.push(Trial::test(blinded, move || is_found_out(language, name, false)));
                }
            }
        }
    }
    libtest_mimic::run(&Arguments::from_iter(words), trials).exit_code()
}

fn one(choice: &Choice, seed: u64) -> Result<(), Failed> {
    [false, true].into_iter().try_for_each(|fresh| {
        let sequence = choice.story(seed, fresh);
        play(&sequence).map(drop).map_err(|difference| Failed::from(report(&sequence, difference, choice.edits)))
    })
}

/// Plays many stories on all processors and stops at the first that fails.
fn many(choice: &Choice, fresh: bool) -> Result<(), Failed> {
    let next = AtomicU64::new(choice.from);
    let stop = AtomicBool::new(false);
    let total = Mutex::new((0, Played::default()));
    let failure: Mutex<Option<(Sequence, Difference)>> = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= choice.from + choice.sequences {
                break;
            }
            let sequence = choice.story(seed, fresh);
            match play(&sequence) {
                Ok(played) => {
                    let mut total = total.lock().expect("no thread panicked");
                    total.0 += 1;
                    total.1.edits += played.edits;
                    total.1.answers += played.answers;
                    total.1.deltas += played.deltas;
                    total.1.bulks += played.bulks;
                    total.1.resumed += played.resumed;
                    total.1.left += played.left;
                }
                Err(difference) => {
                    stop.store(true, Ordering::Relaxed);
                    failure.lock().expect("no thread panicked").get_or_insert((sequence, difference));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    if let Some((sequence, difference)) = failure.into_inner().expect("no thread panicked") {
        return Err(report(&sequence, difference, choice.edits).into());
    }
    let (sequences, Played { edits, answers, deltas, bulks, resumed, left }) = total.into_inner().expect("no thread panicked");
    println!(
        "{sequences} sequences, {edits} edits, {deltas} deltas, {resumed} resumed, {left} given up, {answers} answers beside the exports: no difference"
    );
    if fresh && resumed < 4 * bulks {
        return Err(format!("only {resumed} syncs went on where the process before left it").into());
    }
    if deltas < 4 * bulks {
        return Err(format!("{bulks} generations were written whole, and only {deltas} as deltas").into());
    }
    Ok(())
}

/// The word by which this program starts itself to play with a blinded database.
const BLINDED: &str = "--blinded";
/// Its last word when each edit meets a process that remembers nothing.
const FRESH: &str = "fresh";
/// Stories that a blinded database may survive.
const ATTEMPTS: u64 = 60;
/// What the answers about a language depend on: a database that is blind to one of these must be found out by stories in it.
const DEPENDENCIES: &[(&str, &[Blindness])] = &[
    (
        "python",
        &[
            Blindness::Surfaces,
            Blindness::ParseStatuses,
            Blindness::Paths,
            Blindness::Contexts,
            Blindness::Modules,
            Blindness::Exports,
            Blindness::Rebindings,
        ],
    ),
    (
        "ecmascript",
        &[
            Blindness::Surfaces,
            Blindness::ParseStatuses,
            Blindness::Paths,
            Blindness::Contexts,
            Blindness::Modules,
            Blindness::Exports,
            Blindness::Rebindings,
            Blindness::Members,
        ],
    ),
    (
        "go",
        &[
            Blindness::Surfaces,
            Blindness::ParseStatuses,
            Blindness::Paths,
            Blindness::Folders,
            Blindness::Texts,
            Blindness::Contexts,
            Blindness::Modules,
            Blindness::Exports,
            Blindness::Members,
        ],
    ),
];
/// What a process that remembers nothing hardly errs by: it solves each table that it needs anew, and of this family's files those that ask for
/// a table ask for the surface that it follows from, too, but through a star. `analysis::tests::resumed` has such cases.
const UNSEEN_IN_FRESH_PROCESSES: &[(&str, Blindness)] = &[("ecmascript", Blindness::Exports)];
/// Where to begin with those that only few stories find out, so that the test is quick; from the start it takes longer, no more.
const SHORT_CUTS: &[(&str, Blindness, u64)] = &[
    ("python", Blindness::Contexts, 38),
    ("python", Blindness::Rebindings, 57),
    ("ecmascript", Blindness::Contexts, 20),
    ("go", Blindness::Members, 16),
];

fn name_of(kind: Blindness) -> &'static str {
    Blindness::ALL.iter().find(|(_, known)| *known == kind).expect("every kind has a name").0
}

/// Plays with a blinded database until it is found out, and says how.
fn find_out(language: &str, name: &str, fresh: bool) -> ExitCode {
    let Some((_, kind)) = Blindness::ALL.iter().find(|(known, _)| *known == name) else { return ExitCode::FAILURE };
    let Some((language, _)) = DEPENDENCIES.iter().find(|(known, _)| *known == language) else { return ExitCode::FAILURE };
    blind(*kind);
    let short_cut = SHORT_CUTS.iter().find(|(of, known, _)| of == language && known == kind);
    let first = short_cut.map_or(0, |(_, _, seed)| *seed);
    for seed in first..first + ATTEMPTS {
        // The answers must give it away; that a build refuses edges which lead nowhere is a safety net of its own.
        if let Err(difference) = play(&Sequence { fresh, ..sequence::make(language, seed, 8) })
            && difference.what.contains("--- only incremental")
        {
            println!("found out by seed {seed}, edit {}: {}", difference.edit, difference.what);
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::FAILURE
}

/// Starts this program blinded, in a process of its own since that cannot be undone.
fn is_found_out(language: &str, name: &str, fresh: bool) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let keeper = if fresh { FRESH } else { "steady" };
    let output = Command::new(program).args([BLINDED, language, name, keeper]).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        println!("{}", said.lines().next().unwrap_or_default());
        Ok(())
    } else {
        Err(format!("{ATTEMPTS} sequences did not show that the database is blind to {name}: {said}").into())
    }
}

/// Tells how a story failed, the shortest form of it that was found, and how to see it again.
fn report(sequence: &Sequence, difference: Difference, edits: usize) -> String {
    let first = format!("after edit {} of seed {} in {}: {}", difference.edit, sequence.seed, sequence.cast, difference.what);
    let (short, difference) = shrink::shrink(sequence, difference);
    format!(
        "{first}\n\nshortened: {}\n{}\nagain: cargo test --test random -- --edits {edits} --language {} --seed {}",
        difference.what,
        short.tell(),
        sequence.cast,
        sequence.seed,
    )
}
