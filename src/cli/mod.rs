//! The command line: arguments in, text out, exit codes. One of the two layers that print.
//!
//! Must not know SQL, salsa or how an answer is found. Invariant: every failure leaves through [`failure`], so that the same failure has
//! the same code and exit everywhere.

pub mod arguments;
pub mod failure;
