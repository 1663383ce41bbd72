//! Prose and data: files that are no source of a registered language but are kept for navigation.
//! Markdown and reStructuredText give their headings; everything else only its lines.
