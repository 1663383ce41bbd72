//! Why a reference has an edge, candidates or none, in one sentence.
//!
//! Must not resolve anything: it tells what the generation holds, with lines of the source that show it. Invariant: a sentence claims no
//! more than the edges and the diagnostic of its reference; what it adds are quotations with their lines.

pub mod site;
pub mod words;

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::model::{EdgeKind, Reason, Resolution};
use crate::store::{DiagnosticRow, EdgeRow, FileReferences, NodeId};

use super::response::ReferenceTarget;
use super::source::SourceFile;
use site::{Mention, Receiver, is_word, shown, words_at};

/// Most targets that a sentence names.
const MAX_NAMED: usize = 3;

/// What one reference came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
    pub name: Arc<str>,
    pub kind: EdgeKind,
    pub source: NodeId,
    /// Why it has no `resolved_static` edge.
    pub reason: Option<Reason>,
    pub candidates: u32,
    /// Its edges, the surest first, each with the name of what it leads to.
    pub edges: Vec<(EdgeRow, Arc<str>)>,
}

impl Reference {
    /// Returns the reference of a diagnostic, without its edges.
    pub fn of(diagnostic: &DiagnosticRow) -> Self {
        Self {
            path: Arc::clone(&diagnostic.path),
            line: diagnostic.line,
            column: diagnostic.column,
            name: Arc::clone(&diagnostic.name),
            kind: diagnostic.kind,
            source: diagnostic.source,
            reason: Some(diagnostic.reason),
            candidates: diagnostic.candidates,
            edges: Vec::new(),
        }
    }

    /// Returns how sure its surest edge is.
    pub fn resolution(&self) -> Option<Resolution> {
        self.edges.first().map(|(edge, _)| edge.resolution)
    }

    /// Returns whether it has no edge that is certain.
    pub fn is_open(&self) -> bool {
        self.resolution() != Some(Resolution::ResolvedStatic)
    }

    /// Returns whether an edge belongs to it.
    pub fn is_of(&self, edge: &EdgeRow) -> bool {
        (self.line, self.column, self.kind) == (edge.line, edge.column, edge.kind)
    }
}

/// Brings the edges and the diagnostics of a file together by reference, in the order of their places.
pub fn references(rows: &FileReferences) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let place = |reference: &Reference| (reference.line, reference.column, reference.kind);
    for (edge, target) in &rows.edges {
        let entry = (edge.clone(), Arc::clone(target));
        match found.last_mut().filter(|last| last.is_of(edge)) {
            Some(last) => last.edges.push(entry),
            None => found.push(Reference {
                path: Arc::clone(&edge.path),
                line: edge.line,
                column: edge.column,
                name: Arc::clone(&edge.name),
                kind: edge.kind,
                source: edge.source,
                reason: None,
                candidates: 0,
                edges: vec![entry],
            }),
        }
    }
    let bound = found.len();
    for diagnostic in &rows.diagnostics {
        let key = (diagnostic.line, diagnostic.column, diagnostic.kind);
        match found[..bound].binary_search_by_key(&key, place) {
            Ok(index) => {
                let reference = &mut found[index];
                reference.reason = reference.reason.or(Some(diagnostic.reason));
                reference.candidates = reference.candidates.max(diagnostic.candidates);
            }
            // Several reasons of one reference stand one after the other.
            Err(_) if found[bound..].last().is_some_and(|last| place(last) == key) => {}
            Err(_) => found.push(Reference::of(diagnostic)),
        }
    }
    found.sort_by_key(place);
    for reference in &mut found {
        reference.edges.sort_by_key(|(edge, _)| (edge.resolution, edge.target));
    }
    found
}

/// A name that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub line: u32,
    /// Name of the token that stands for it.
    pub name: Arc<str>,
    pub column: u32,
    pub reason: Option<Reason>,
    /// The file of the module, where the token is the module's.
    pub module: Option<Arc<str>>,
}

/// Returns what a file imports, in the order of its lines. `file_of` gives the path of an edge's target when that is a file.
pub fn imports<E>(
    references: &[Reference],
    mut file_of: impl FnMut(NodeId) -> Result<Option<Arc<str>>, E>,
) -> Result<Vec<Import>, E> {
    let mut found = Vec::new();
    for reference in references.iter().filter(|reference| reference.kind == EdgeKind::Imports) {
        let module = match reference.edges.first() {
            Some((edge, _)) => file_of(edge.target)?,
            None => None,
        };
        let (line, column, name, reason) = (reference.line, reference.column, Arc::clone(&reference.name), reference.reason);
        found.push(Import { line, name, column, reason, module });
    }
    Ok(found)
}

/// Returns the other names under which a file imports a name: `as other`, `{ name: other }`, `other "path/name"`.
pub fn aliases(imports: &[Import], name: &str, file: &SourceFile) -> Vec<Arc<str>> {
    let mut found: Vec<Arc<str>> = Vec::new();
    for import in imports.iter().filter(|import| *import.name == *name) {
        let Some(line) = site::line_of(file, import.line) else { continue };
        let (Some(before), Some(after)) = (line.get(..import.column as usize), line.get(import.column as usize + name.len()..))
        else {
            continue;
        };
        let after = after.trim_start();
        let renamed = after.strip_prefix("as ").or_else(|| after.strip_prefix(':'));
        let alias = match renamed {
            Some(rest) => rest.trim_start().split(|character| !is_word(character)).next().unwrap_or_default(),
            // Go names a package before its path.
            None => match before.rsplit_once('"') {
                Some((head, _)) if after.starts_with('"') => head.trim().rsplit(char::is_whitespace).next().unwrap_or_default(),
                _ => "",
            },
        };
        if !alias.is_empty() && alias != "import" && alias != name && alias.chars().all(is_word) {
            found.push(Arc::from(alias));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A function around a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub line: u32,
    pub signature: Option<Arc<str>>,
}

/// What can be quoted for a reference.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub imports: &'a [Import],
    /// `None` when the generation holds no source of the file.
    pub file: Option<&'a SourceFile>,
    /// The functions that it stands in, the innermost first.
    pub scopes: &'a [Scope],
    /// The lines of the innermost class that it stands in, else of the whole file.
    pub class: &'a RangeInclusive<u32>,
}

/// Makes the sentence of a reference. `targets` are those of its edges in their order.
pub fn sentence(reference: &Reference, targets: &[ReferenceTarget], around: Around<'_>) -> String {
    if reference.kind == EdgeKind::Contains {
        let words = reference.reason.map_or("", |reason| words::of_reason(reason).bare);
        return format!("nothing is known of what the file holds and uses: {words}");
    }
    let receiver = match around.file {
        Some(file) if reference.kind != EdgeKind::Imports => site::receiver(file, reference.line, reference.column),
        _ => Receiver::None,
    };
    let (written, taken_from) = match &receiver {
        Receiver::None | Receiver::Unclear => (format!("`{}`", reference.name), "the value it is taken from".to_owned()),
        Receiver::Written(text, mark) => (format!("`{text}{mark}{}`", reference.name), format!("`{text}`")),
    };
    let subject = match reference.kind {
        EdgeKind::Calls => format!("the call of {written}"),
        EdgeKind::Inherits => format!("the base {written}"),
        EdgeKind::Imports => format!("the import of {written}"),
        EdgeKind::Contains | EdgeKind::References => format!("the use of {written}"),
    };
    let fill = |text: &str| words::fill(text, &reference.name, &taken_from);
    let rule_of = |rule: &str| match words::of_import_rule(rule).filter(|_| reference.kind == EdgeKind::Imports) {
        Some(words) => words.to_owned(),
        None => words::of_rule(rule).map_or_else(|| format!("the rule `{rule}` says so"), fill),
    };
    let (bound, candidates): (Vec<_>, Vec<_>) =
        targets.iter().partition(|target| target.resolution == Resolution::ResolvedStatic);
    if let Some(first) = bound.first() {
        let mut text = format!("{subject} is bound to {}: {}", listed(&bound, " and "), rule_of(&first.rule_id));
        if let Some(candidate) = candidates.first() {
            text.push_str(&format!("; it may also be {}: {}", listed(&candidates, " or "), rule_of(&candidate.rule_id)));
        }
        return text;
    }
    let evidence = around.file.and_then(|file| Evidence::find(reference, &receiver, around, file));
    let mut text = match candidates.first() {
        Some(first) => {
            let doubt = reference.reason.and_then(|reason| words::of_doubt(&first.rule_id, reason));
            let doubt = doubt.map_or_else(String::new, |doubt| format!(", {}", fill(doubt)));
            format!("{subject} may be {}: {}{doubt}", listed(&candidates, " or "), rule_of(&first.rule_id))
        }
        None => match (reference.reason, &evidence) {
            (Some(Reason::ExternalImport), Some(Evidence::Import { external: true, root, line, text, .. })) => {
                return format!(
                    "{subject} has no edge: `{root}` is imported from outside the indexed files on line {line} (`{text}`)"
                );
            }
            (Some(reason), _) => {
                let words = words::of_reason(reason);
                let why = match (reference.kind, &receiver) {
                    (EdgeKind::Imports, _) => words.import,
                    (_, Receiver::None) => words.bare,
                    (_, Receiver::Unclear | Receiver::Written(..)) => words.member,
                };
                format!("{subject} has no edge: {}", fill(why))
            }
            (None, _) => format!("{subject} has no edge"),
        },
    };
    if let Some(evidence) = evidence {
        text.push_str(&evidence.said());
    }
    text
}

/// A line that shows why a reference came to what it did.
enum Evidence {
    /// That of the import itself.
    Statement(String),
    /// Where the first name of what is used is imported.
    Import { root: String, line: u32, text: String, module: Option<Arc<str>>, external: bool },
    /// Where the name is given its value, or stands first.
    Mention { what: String, mention: Mention },
    /// The head of the definition that declares the name.
    Parameter { root: String, line: u32, signature: String },
}

impl Evidence {
    fn find(reference: &Reference, receiver: &Receiver, around: Around<'_>, file: &SourceFile) -> Option<Self> {
        if reference.kind == EdgeKind::Imports {
            return Some(Self::Statement(shown(file.line(reference.line)?))).filter(|_| reference.edges.is_empty());
        }
        let chain: &str = match receiver {
            Receiver::None => &reference.name,
            Receiver::Written(text, _) => text,
            Receiver::Unclear => return None,
        };
        let root: &str = chain.split(|character| !is_word(character)).next().filter(|root| !root.is_empty())?;
        let is_plain = chain.chars().all(|character| is_word(character) || character == '.');
        let mention = |what: &str, mention: Mention| Self::Mention { what: what.to_owned(), mention };
        if matches!(root, "self" | "this" | "cls") {
            // Of the instance itself it is the member that may be set without being a definition.
            let own = if chain == root { format!("{chain}.{}", reference.name) } else { chain.to_owned() };
            if !is_plain || (chain == root && !reference.edges.is_empty()) {
                return None;
            }
            return site::assignment(file, &own, reference.line, around.class).map(|found| mention(&own, found));
        }
        let line = reference.line;
        // A type or a name of the language that stands in a head is not declared there.
        let is_foreign = *receiver == Receiver::None && reference.reason == Some(Reason::ExternalImport);
        for scope in around.scopes.iter().filter(|_| !is_foreign) {
            if let Some(found) = site::mention(file, root, scope.line, line).filter(|found| found.binds) {
                return Some(mention(root, found));
            }
            if let Some(signature) = scope.signature.as_deref().filter(|signature| is_declared(signature, root)) {
                return Some(Self::Parameter { root: root.to_owned(), line: scope.line, signature: shown(signature) });
            }
        }
        // A name that a line within may bind in passing is not told of where another of its name is imported.
        let from = around.scopes.first().map_or(line, |scope| scope.line);
        if site::is_bound_in_passing(file, root, from, line) {
            return None;
        }
        if let Some(found) = Self::import(around.imports, root, reference, file) {
            return Some(found);
        }
        let is_open = matches!(
            reference.reason,
            Some(Reason::LocalBinding | Reason::ConditionalBinding | Reason::DynamicReceiver | Reason::AmbiguousMember)
        );
        let is_told = *receiver == Receiver::None && !reference.edges.is_empty();
        if !is_open || is_told {
            return None;
        }
        let innermost = around.scopes.first().and_then(|scope| site::mention(file, root, scope.line, line));
        let found = innermost.or_else(|| site::mention(file, root, 1, line).filter(|found| found.binds))?;
        Some(mention(root, found))
    }

    /// The import that a name comes from: the nearest before a line, else the first.
    fn import(imports: &[Import], root: &str, reference: &Reference, file: &SourceFile) -> Option<Self> {
        let in_quotes = reference.path.ends_with(".go");
        let brings =
            |import: &&Import| site::line_of(file, import.line).is_some_and(|text| site::is_brought(text, root, in_quotes));
        let before = imports.iter().filter(|import| import.line < reference.line).rfind(brings);
        let found = before.or_else(|| imports.iter().find(brings))?;
        let mut beside = imports.iter().filter(|import| import.line == found.line);
        let own = beside.clone().filter(|import| *import.name == *root).find_map(|import| import.module.clone());
        let mut modules: Vec<&Arc<str>> = beside.clone().filter_map(|import| import.module.as_ref()).collect();
        modules.dedup();
        // Of several statements on one line nobody knows here which one brings an alias.
        let only = modules.first().filter(|_| modules.len() == 1).map(|module| Arc::clone(module));
        let module = own.or(only);
        let external = beside.all(|import| import.reason == Some(Reason::ExternalImport));
        let text = shown(file.line(found.line)?);
        Some(Self::Import { root: root.to_owned(), line: found.line, text, module, external })
    }

    /// Returns what it adds to a sentence.
    fn said(&self) -> String {
        match self {
            Self::Statement(text) => format!(" (`{text}`)"),
            Self::Import { root, line, text, module, .. } => {
                let from = module.as_ref().map_or_else(String::new, |module| format!(" from {module}"));
                format!("; `{root}` is imported{from} on line {line} (`{text}`)")
            }
            Self::Mention { what, mention: Mention { line, text, binds: true } } => {
                format!("; `{what}` is set on line {line} (`{text}`)")
            }
            Self::Mention { what, mention: Mention { line, text, binds: false } } => {
                format!("; `{what}` first stands on line {line} (`{text}`)")
            }
            Self::Parameter { root, line, signature } => format!("; `{root}` stands in the head on line {line} (`{signature}`)"),
        }
    }
}

/// Returns whether the head of a definition holds a name that is no qualifier of another.
fn is_declared(signature: &str, name: &str) -> bool {
    words_at(signature, name).any(|at| {
        !signature[at + name.len()..].starts_with(['.', ':', '(', '[', '<']) || {
            // `name: T` declares it; `name::T` only leads to something.
            let after = &signature[at + name.len()..];
            after.starts_with(':') && !after.starts_with("::")
        }
    })
}

/// Names targets with their places, the first few of them.
fn listed(targets: &[&ReferenceTarget], last: &str) -> String {
    let named = |target: &ReferenceTarget| match target.line {
        0 => target.path.to_string(),
        line => format!("{} ({}:{line})", target.qualified_name, target.path),
    };
    let mut names: Vec<String> = targets.iter().take(MAX_NAMED).map(|target| named(target)).collect();
    if targets.len() > MAX_NAMED {
        names.push(format!("{} more", targets.len() - MAX_NAMED));
    }
    match names.split_last() {
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{}{last}{end}", rest.join(", ")),
        None => String::new(),
    }
}
