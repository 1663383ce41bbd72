//! How far a command is, shown to who waits at a terminal: a bar with counts, rate and time left; a line now and then where standard error
//! is none.
//!
//! Must not know what is worked on. Invariant: nothing is shown before half a second, nothing stays, and nothing is shown any more once the
//! command has something to say.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::{Onlooker, Progress, Step};
use crate::render::text::grouped;

use super::arguments::{Arguments, Command};

/// What takes less is not worth to be shown.
const DELAY: Duration = Duration::from_millis(500);
/// How often it is looked how far the work is.
const GLANCE: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(5);
/// Before this, a rate says nothing.
const FIRST_RATE: Duration = Duration::from_millis(300);

/// Shows how far a command is.
#[derive(Debug)]
pub struct Show(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    display: Mutex<Display>,
    ended: Condvar,
}

#[derive(Debug)]
struct Display {
    surface: Surface,
    begun: Instant,
    /// What is shown, and since when.
    step: Option<(Step, Instant)>,
    /// When the last line was written, or the first one began to be due.
    line: Instant,
}

#[derive(Debug)]
enum Surface {
    /// A terminal, with the bar that is drawn there and where that ends.
    Terminal(Option<(ProgressBar, Option<u64>)>),
    /// Something else that is read.
    Lines,
    /// Nobody wants to see it, or all that was shown is taken away.
    Nothing,
}

impl Show {
    /// Returns what shows how far a command line is, where that is wanted.
    pub fn of(line: &[OsString]) -> Self {
        let is_wanted = Arguments::try_parse_from(line).is_ok_and(|arguments| is_wanted(&arguments));
        let is_terminal = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        Self::on(match (is_wanted, is_terminal) {
            (false, _) => Surface::Nothing,
            (true, true) => Surface::Terminal(None),
            (true, false) => Surface::Lines,
        })
    }

    fn on(surface: Surface) -> Self {
        let now = Instant::now();
        let display = Display { surface, begun: now, step: None, line: now };
        Self(Arc::new(Shared { display: Mutex::new(display), ended: Condvar::new() }))
    }

    /// Returns whether anything is ever shown.
    pub fn is_shown(&self) -> bool {
        !matches!(self.0.lock().surface, Surface::Nothing)
    }

    /// Shows how far the command is.
    pub fn show(&self, progress: Progress) {
        self.0.lock().show(progress, Instant::now());
    }

    /// Shows what an onlooker sees, from a thread of its own, until the end.
    pub fn follow(&self, onlooker: &Arc<Onlooker>) {
        if !self.is_shown() {
            return;
        }
        let (shared, onlooker) = (Arc::clone(&self.0), Arc::clone(onlooker));
        let follow = move || {
            let mut display = shared.lock();
            while !matches!(display.surface, Surface::Nothing) {
                if let Some(progress) = onlooker.read() {
                    display.show(progress, Instant::now());
                }
                display = shared.ended.wait_timeout(display, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        // Without a thread nothing is shown, and everything is done all the same.
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(follow);
    }

    /// Takes away what is shown, and shows nothing any more.
    pub fn end(&self) {
        self.0.lock().end();
        self.0.ended.notify_all();
    }

    /// Returns a writer that ends the show before it writes.
    pub fn before<'s>(&'s self, inner: &'s mut dyn Write) -> Before<'s> {
        Before { show: self, inner }
    }
}

/// Returns whether how far it is may be shown beside what a command writes: not to a program, nor beside traces or where somebody else
/// is served.
fn is_wanted(arguments: &Arguments) -> bool {
    let global = &arguments.global;
    let is_served = matches!(arguments.command, Command::Query { .. } | Command::Hook(_));
    !global.json && !global.quiet && arguments.is_remote() && !is_served
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Display> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Display {
    fn show(&mut self, progress: Progress, now: Instant) {
        let since = match self.step {
            Some((step, since)) if step == progress.step => since,
            _ => now,
        };
        let is_new = self.step.is_none_or(|(step, _)| step != progress.step);
        self.step = Some((progress.step, since));
        if now.saturating_duration_since(self.begun) < DELAY {
            return;
        }
        let elapsed = now.saturating_duration_since(since);
        match &mut self.surface {
            Surface::Terminal(bar) => {
                if let Some((old, _)) = bar.take_if(|(_, total)| is_new || *total != progress.total) {
                    old.finish_and_clear();
                }
                let (bar, _) = bar.get_or_insert_with(|| (bar_of_terminal(progress.total), progress.total));
                draw(bar, progress, elapsed);
            }
            Surface::Lines => {
                if now.saturating_duration_since(self.line) >= LINE {
                    self.line = now;
                    // With standard error gone there is nobody left to tell.
                    let _ = writeln!(io::stderr(), "{}: {}", name(progress.step), counts(progress, elapsed));
                }
            }
            Surface::Nothing => {}
        }
    }

    fn end(&mut self) {
        if let Surface::Terminal(Some((bar, _))) = std::mem::replace(&mut self.surface, Surface::Nothing) {
            bar.finish_and_clear();
        }
    }
}

fn bar_of_terminal(total: Option<u64>) -> ProgressBar {
    ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10))
}

fn draw(bar: &ProgressBar, progress: Progress, elapsed: Duration) {
    let template = if progress.total.is_some() { "{prefix:21} {bar:24} {msg}" } else { "{prefix:21} {msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("━╸─"));
    bar.set_prefix(name(progress.step));
    bar.set_message(counts(progress, elapsed));
    bar.set_position(progress.done);
    bar.tick();
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Wait => "waiting for a build",
        Step::VerifyStore => "checking the store",
        Step::Check => "checking files",
        Step::Extract => "reading and parsing",
        Step::Load => "loading facts",
        Step::Resolve => "resolving references",
        Step::Store => "writing the index",
    }
}

/// Returns counts, rate and time left of a step that has taken so long: `1,234/4,057 files · 612/s · 5 s left`.
fn counts(progress: Progress, elapsed: Duration) -> String {
    let Progress { step, done, total } = progress;
    let what = if step == Step::VerifyStore { "packs" } else { "files" };
    let mut text = match total {
        Some(total) => format!("{}/{} {what}", grouped(done), grouped(total)),
        None if done > 0 => format!("{} {what}", grouped(done)),
        None => return format!("{} s", elapsed.as_secs()),
    };
    if done == 0 || elapsed < FIRST_RATE {
        return text;
    }
    let rate = done as f64 / elapsed.as_secs_f64();
    text.push_str(&if rate < 10.0 { format!(" · {rate:.1}/s") } else { format!(" · {}/s", grouped(rate as u64)) });
    if let Some(left) = total.map(|total| total.saturating_sub(done) as f64 / rate) {
        text.push_str(&format!(" · {} left", lasting(left.ceil() as u64)));
    }
    text
}

/// Returns a time to come.
fn lasting(seconds: u64) -> String {
    if seconds < 100 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

/// Writes once nothing is shown any more.
pub struct Before<'s> {
    show: &'s Show,
    inner: &'s mut dyn Write,
}

impl Write for Before<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.show.end();
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rate_and_time_left() {
        let check = |done, total, millis, want: &str| {
            let progress = Progress { step: Step::Extract, done, total };
            assert_eq!(counts(progress, Duration::from_millis(millis)), want);
        };
        check(0, None, 2_900, "2 s");
        check(0, Some(4_057), 900, "0/4,057 files");
        check(612, Some(4_057), 200, "612/4,057 files");
        check(1_234, Some(4_057), 2_000, "1,234/4,057 files · 617/s · 5 s left");
        check(3, Some(4_057), 2_000, "3/4,057 files · 1.5/s · 46 min left");
        check(4_057, Some(4_057), 9_000, "4,057/4,057 files · 450/s · 0 s left");
        check(70, None, 1_000, "70 files · 70/s");
        let packs = Progress { step: Step::VerifyStore, done: 1, total: Some(3) };
        assert_eq!(counts(packs, Duration::from_secs(1)), "1/3 packs · 1.0/s · 2 s left");
    }

    #[test]
    fn only_who_can_read_it_is_shown_it() {
        let check = |line: &str, want: bool| {
            let arguments = Arguments::try_parse_from(line.split(' ')).expect("a valid line");
            assert_eq!(is_wanted(&arguments), want, "{line}");
        };
        check("sextant index", true);
        check("sextant sync --verify", true);
        check("sextant callers f", true);
        for line in ["sextant index --json", "sextant sync -q", "sextant index -v", "sextant hook claude", "sextant watch"] {
            check(line, false);
        }
        check("sextant query --request-file -", false);
        check("sextant daemon run", false);
    }

    #[test]
    fn nothing_before_half_a_second_nor_after_the_end() {
        let show = Show::on(Surface::Terminal(None));
        let drawn = || matches!(show.0.lock().surface, Surface::Terminal(Some(_)));
        let at = |millis| {
            let mut display = show.0.lock();
            let begun = display.begun;
            display.show(Progress { step: Step::Check, done: 1, total: Some(2) }, begun + Duration::from_millis(millis));
        };
        at(400);
        assert!(!drawn());
        at(600);
        assert!(drawn());
        let mut said = Vec::new();
        show.before(&mut said).write_all(b"x").expect("written");
        assert!(!drawn() && !show.is_shown());
        at(700);
        assert!(!drawn() && said == b"x");
    }
}
