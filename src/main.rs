//! The program: it hands its arguments to [`sextant::cli`] and exits as that says. Knows nothing else.

fn main() {}
