//! Bytes to facts, with limits. Behind [`Parser`] the grammars may run in this process or in others.
