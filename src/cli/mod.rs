//! The command line: arguments in, text out, exit codes. One of the two layers that print.
