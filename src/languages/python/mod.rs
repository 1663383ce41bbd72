//! Python: `.py` and `.pyi`.
pub struct Python;
