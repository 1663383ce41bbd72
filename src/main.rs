//! The program: hands its arguments to [`sextant::cli`] and exits as that says. Must not know anything else.
//!
//! Invariant: the whole program is the library, so that tests can run it in their own process.

fn main() -> std::process::ExitCode {
    sextant::cli::main()
}
