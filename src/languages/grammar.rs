//! Reading with a tree-sitter grammar: tables from its numeric kinds to an enum, and parsing that can be told to stop.
//!
//! Must not know any one language. Invariant: a kind of another build of the grammar, ERROR included, is looked up with bounds and is
//! at worst `Other`.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use tree_sitter::{Language, ParseOptions, ParseState, Parser, Tree};

use super::ExtractError;

/// Declares an enum of the node kinds a language cares for, with a table from the grammar's numbers.
macro_rules! node_kinds {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $kind:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($variant,)+
            /// A named node of another kind.
            Unlisted,
            /// A token, or an ERROR.
            Other,
        }

        impl $name {
            /// Returns the variant of each numeric kind of the grammar; anonymous tokens are `Other`.
            pub(super) fn table(language: &tree_sitter::Language) -> Vec<Self> {
                (0..language.node_kind_count())
                    .map(|id| {
                        let id = u16::try_from(id).expect("the grammar's kinds are 16-bit numbers");
                        if !language.node_kind_is_named(id) {
                            return Self::Other;
                        }
                        match language.node_kind_for_id(id) { $(Some($kind) => Self::$variant,)+ _ => Self::Unlisted }
                    })
                    .collect()
            }
        }
    };
}
pub(super) use node_kinds;

/// Iterates the children of the cursor's node, leaving the cursor where it was.
macro_rules! each_child {
    ($cursor:ident, $body:block) => {
        if $cursor.goto_first_child() {
            loop {
                $body
                if !$cursor.goto_next_sibling() {
                    break;
                }
            }
            $cursor.goto_parent();
        }
    };
}
pub(super) use each_child;

/// Returns a text with each run of white space as one space, cut off after so many bytes.
pub(super) fn folded(text: &str, limit: usize) -> Arc<str> {
    let mut out = String::new();
    for word in text.split_ascii_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > limit {
            out.truncate(out.floor_char_boundary(limit));
            out.push('…');
            break;
        }
    }
    out.into()
}

/// Parses `source`; `stop` is asked now and then, and ends the parse by saying true.
///
/// # Errors
/// [`ExtractError::Stopped`] when `stop` said so.
pub(super) fn parse(language: &Language, source: &[u8], stop: &mut dyn FnMut() -> bool) -> Result<Tree, ExtractError> {
    thread_local! {
        // A parser keeps the memory of one parse for the next.
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(language).expect("the grammar's version is one the linked core reads");
        let mut progress = |_: &ParseState| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(&mut |offset, _| source.get(offset..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            // What was begun must not be taken for the start of the next file.
            parser.reset();
        }
        tree.ok_or(ExtractError::Stopped)
    })
}
