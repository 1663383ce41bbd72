//! The text of `why`: a sentence for each reference, under its place.
//!
//! Must not know how a reference was resolved. Invariant: that a caller does not hold a name is never said without saying what is not
//! stored.

use super::{FAINT, NAME, Page, SURE, UNSURE, clean, full_name, is_none};
use crate::model::{Resolution, SymbolKind};
use crate::query::response::{Item, ReferenceReport, Response};

impl Page {
    /// Draws what references came to.
    pub(super) fn references(&mut self, response: &Response) {
        if is_none(response) {
            self.no_reference(response);
        }
        for item in &response.items {
            if let Some(reference) = &item.reference {
                self.reference(reference);
            }
        }
    }

    /// `path:line sentence  resolution rule`.
    fn reference(&mut self, reference: &ReferenceReport) {
        let place = self.place(&reference.path, reference.line.max(1));
        let sentence = clean(&reference.explanation);
        let reason = reference.reason.map(|reason| reason.as_str());
        let rule = reference.targets.first().map_or("", |target| &target.rule_id);
        let came_to = match reference.resolution {
            Some(Resolution::ResolvedStatic) => self.paint(SURE, &format!("resolved_static {rule}")).to_string(),
            Some(Resolution::Candidate) => {
                let reason = reason.filter(|reason| *reason != rule).map_or_else(String::new, |reason| format!(", {reason}"));
                self.paint(UNSURE, &format!("candidate {rule}{reason}")).to_string()
            }
            None => self.paint(UNSURE, reason.unwrap_or_default()).to_string(),
        };
        self.line(format_args!("{place} {sentence}  {came_to}"));
    }

    /// Says that there is none, and what that does not mean.
    fn no_reference(&mut self, response: &Response) {
        let inside = match &response.subject {
            Some(subject) if subject.kind == Some(SymbolKind::File) => format!(" in {}", clean(&subject.path)),
            Some(subject) => self.named(subject),
            None => String::new(),
        };
        let Some(name) = response.asked.as_deref().map(clean) else {
            self.line(format_args!("every stored reference{inside} has a certain edge"));
            return;
        };
        self.line(format_args!("no reference to `{name}` is stored{inside}"));
        let not_stored = "local names, parameters, comments and strings are not stored";
        match response.coverage.written_on_lines.as_deref() {
            Some([]) => self.faint(&format!("`{name}` is not written there at all")),
            Some(lines) => {
                let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
                let line = if numbers.len() == 1 { "line" } else { "lines" };
                self.faint(&format!("it is written on {line} {}: {not_stored}", numbers.join(", ")));
            }
            None => self.faint(not_stored),
        }
    }

    fn named(&self, subject: &Item) -> String {
        let name = clean(&full_name(subject));
        let place = self.place(&subject.path, subject.definition_line.max(1));
        format!(" in {} ({place})", self.paint(NAME, &name))
    }

    /// Says which files may hold uses that nobody reads.
    pub(super) fn unread(&mut self, response: &Response) {
        if let Some(remark) = unread_remark(&response.limitations) {
            let remark = self.paint(FAINT, &remark).to_string();
            self.line(format_args!("{remark}"));
        }
    }
}

/// Files that no language reads though they may hold code, by their words in `limitations`.
const UNREAD: [(&str, &str); 3] = [
    ("notebooks_not_read", "notebooks (.ipynb)"),
    ("svelte_files_not_read", "Svelte components (.svelte)"),
    ("vue_files_not_read", "Vue components (.vue)"),
];

/// Returns the kinds of files that may hold code and that no language reads, as people call them.
pub fn unread(limitations: &[String]) -> Vec<&'static str> {
    UNREAD.iter().filter(|(word, _)| limitations.iter().any(|limitation| limitation == word)).map(|(_, name)| *name).collect()
}

/// Returns the sentence about the files that no language reads.
pub(super) fn unread_remark(limitations: &[String]) -> Option<String> {
    let kinds = unread(limitations);
    (!kinds.is_empty()).then(|| format!("not read: {}; uses in there are not known", kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{check, item, response};
    use super::*;
    use crate::model::{EdgeKind, Reason};
    use crate::query::response::{Near, ReferenceTarget};

    fn reference(line: u32, resolution: Option<Resolution>, reason: Option<Reason>, rule: &str, explanation: &str) -> Item {
        let target = resolution.map(|resolution| ReferenceTarget {
            id: String::new(),
            kind: SymbolKind::Function,
            qualified_name: "app.greet".to_owned(),
            path: Arc::from("app.py"),
            line: 1,
            resolution,
            rule_id: Arc::from(rule),
        });
        let report = ReferenceReport {
            path: Arc::from("m.py"),
            line,
            col_byte: 0,
            name: Arc::from("greet"),
            kind: EdgeKind::Calls,
            reason,
            candidates: 0,
            resolution,
            reference_key: String::new(),
            source_id: String::new(),
            source: String::new(),
            targets: target.into_iter().collect(),
            more_targets: None,
            explanation: explanation.to_owned(),
        };
        Item { path: Arc::from("m.py"), reference: Some(Box::new(report)), ..Item::default() }
    }

    #[test]
    fn a_line_for_each_reference() {
        let items = vec![
            reference(3, Some(Resolution::ResolvedStatic), None, "explicit_import", "it is bound\u{1b}"),
            reference(4, Some(Resolution::Candidate), Some(Reason::DynamicReceiver), "self_member", "it may be"),
            reference(5, None, Some(Reason::ExternalImport), "", "it has no edge"),
        ];
        let mut answer = response("diagnostics", None, items);
        answer.total = 9;
        answer.limitations = vec!["vue_files_not_read".to_owned(), "notebooks_not_read".to_owned()];
        check(
            &answer,
            "m.py:3 it is bound\u{fffd}  resolved_static explicit_import\n\
             m.py:4 it may be  candidate self_member, dynamic_receiver\n\
             m.py:5 it has no edge  external_import\n\
             3 of 9; --limit shows more\n",
        );
    }

    #[test]
    fn nothing_of_a_name() {
        let main = || Some(item("m.py", 2, SymbolKind::Function, "main", "m"));
        let mut answer = response("diagnostics", main(), Vec::new());
        check(&answer, "every stored reference in m.main (m.py:2) has a certain edge\n");
        answer.asked = Some(Arc::from("greet"));
        answer.coverage.written_on_lines = Some(vec![4, 7]);
        check(
            &answer,
            "no reference to `greet` is stored in m.main (m.py:2)\n\
             it is written on lines 4, 7: local names, parameters, comments and strings are not stored\n",
        );
        answer.coverage.written_on_lines = Some(Vec::new());
        answer.coverage.near = Some(vec![Near { qualified_name: "gret".to_owned(), path: "m.py".to_owned(), line: 5 }]);
        check(
            &answer,
            "no reference to `greet` is stored in m.main (m.py:2)\n\
             `greet` is not written there at all\n\
             near names:\n  m.py:5 gret\n",
        );
        let file = Item { kind: Some(SymbolKind::File), ..item("m.py", 1, SymbolKind::File, "m.py", "m") };
        check(&response("diagnostics", Some(file), Vec::new()), "every stored reference in m.py has a certain edge\n");
    }

    #[test]
    fn files_that_nobody_reads_are_named_where_uses_are_listed() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for operation in ["callers", "callees", "impact", "impact_changes", "explore"] {
            let mut answer = response(operation, Some(item("m.py", 2, SymbolKind::Function, "main", "m")), Vec::new());
            answer.limitations = words(&["notebooks_not_read", "static_analysis_only", "vue_files_not_read"]);
            let text = super::super::answer(&answer, super::super::Options::default());
            let said = "not read: notebooks (.ipynb), Vue components (.vue); uses in there are not known\n";
            assert_eq!(text.ends_with(said), operation != "callees", "{operation}: {text}");
        }
        assert_eq!(unread_remark(&words(&["static_analysis_only"])), None);
    }
}
