//! The only place where disk, salsa and store meet.

pub mod gate;
