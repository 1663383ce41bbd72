//! The text of `impact`, and what is said beside the paths of `tests`.
//!
//! Must not know how a path was found. Invariant: what is certain, what may be and what only follows through a container stand apart, and
//! every line names the way back to what was asked about.

use std::fmt::Write as _;

use super::{FAINT, NAME, Options, Page, SURE, UNSURE, clean, counted, full_name, grouped, is_none, more};
use crate::model::{EdgeKind, Resolution, SymbolKind};
use crate::query::response::{DEPTH_LIMIT, Item, NODE_LIMIT, Response, TRAVERSAL_LIMIT};

/// Most names of the way back that a line shows whole; of a longer one the two ends.
const MAX_NAMES: usize = 3;

impl Page {
    /// Draws what a change of the subject reaches.
    pub(super) fn impact(&mut self, response: &Response) {
        let Some(subject) = &response.subject else { return };
        let mentions = response.coverage.unresolved_mentions.unwrap_or(0);
        let groups = [
            ("certain:", self.group(response, |item| !item.through && is_sure(item))),
            ("possible, through candidates:", self.group(response, |item| !item.through && !is_sure(item))),
            ("weaker, through the class or file around a user, or its importers:", self.group(response, |item| item.through)),
        ];
        if response.total == 0 && groups.iter().all(|(_, items)| items.is_empty()) {
            let none = if mentions > 0 { "no use could be bound to" } else { "no use found of" };
            let place = self.place(&subject.path, subject.definition_line.max(1));
            let name = self.paint(NAME, &clean(&full_name(subject))).to_string();
            self.line(format_args!("{none} {name} ({place})"));
        }
        for (title, items) in groups {
            if items.is_empty() {
                continue;
            }
            self.faint(title);
            for item in items {
                let line = self.way(item);
                self.line(format_args!("  {line}"));
                if self.options.source {
                    self.body(item, u32::MAX);
                }
            }
        }
        if mentions > 0 {
            let named = match subject.kind {
                Some(SymbolKind::Function | SymbolKind::Method | SymbolKind::Variable | SymbolKind::Constant) => {
                    format!("named `{}`", clean(subject.name.as_deref().unwrap_or_default()))
                }
                _ => "of names in it".to_owned(),
            };
            self.faint(&format!("{} {named} could not be bound: they may mean it or another", counted(mentions, "use")));
        }
    }

    /// Returns the items of a group. A container that was only climbed to stands around an item shown anyway.
    pub(super) fn group<'r>(&self, response: &'r Response, belongs: impl Fn(&Item) -> bool) -> Vec<&'r Item> {
        response.items.iter().filter(|item| belongs(item) && !item.is_container()).collect()
    }

    /// `path:line user verb used → … → asked  resolution`.
    pub(super) fn way(&self, item: &Item) -> String {
        let path = item.witness_path.as_deref().unwrap_or_default();
        let Some(last) = path.last() else { return self.place(&item.path, item.definition_line.max(1)) };
        let from = match item.kind {
            Some(SymbolKind::File) => "module level".to_owned(),
            _ => clean(item.qualified_name.as_deref().unwrap_or_default()),
        };
        let verb = match last.kind {
            EdgeKind::Contains => "contains",
            EdgeKind::Imports => "imports",
            EdgeKind::Calls => "calls",
            EdgeKind::Inherits => "inherits",
            EdgeKind::References => "references",
        };
        let from = self.paint(if is_sure(item) { NAME } else { FAINT }, &from).to_string();
        // Back from the item: what it uses, and what each of these uses or holds.
        let names: Vec<String> = item.via.iter().rev().map(|name| clean(name)).collect();
        let mut way = names.first().cloned().unwrap_or_default();
        for (index, name) in names.iter().enumerate().skip(1) {
            if names.len() > MAX_NAMES && index > 1 && index + 1 < names.len() {
                if index == 2 {
                    way.push_str(" → …");
                }
                continue;
            }
            let holds = path[names.len() - 1 - index].kind == EdgeKind::Contains;
            write!(way, " {} {name}", if holds { "⊃" } else { "→" }).expect("writing to a string");
        }
        let resolution = match path.iter().find(|edge| edge.resolution == Resolution::Candidate) {
            None => self.paint(SURE, Resolution::ResolvedStatic.as_str()).to_string(),
            Some(edge) => self.paint(UNSURE, &format!("{} {}", edge.resolution.as_str(), edge.rule_id)).to_string(),
        };
        let also = self.also(item, last.line);
        format!("{} {from} {verb} {way}  {resolution}{also}", self.place(&last.path, last.line))
    }

    /// What the walk of `impact` left out.
    pub(super) fn walk_remarks(&mut self, response: &Response) {
        let is_cut = |word: &str| response.limitations.iter().any(|limitation| limitation == word);
        let is_deeper = is_cut(DEPTH_LIMIT);
        if is_deeper && !response.deepest {
            self.faint(&format!("more lies deeper; {} goes further", self.options.flag("--depth")));
        }
        if (is_deeper && response.deepest) || is_cut(NODE_LIMIT) || is_cut(TRAVERSAL_LIMIT) {
            self.faint("it reaches further than one answer follows");
        }
    }
}

pub(super) fn is_sure(item: &Item) -> bool {
    item.resolution == Some(Resolution::ResolvedStatic)
}

/// Returns what is to be said beside the paths of tests, a line each.
pub fn test_remarks(response: &Response, options: Options) -> Vec<String> {
    let has = |word: &str| response.limitations.iter().any(|limitation| limitation == word);
    let mut remarks = Vec::new();
    if is_none(response) {
        remarks.push("no test found that uses them".to_owned());
    }
    let shown = response.items.iter().filter(|item| !item.is_container()).count() as u64;
    if response.total > shown {
        let (shown, total) = (grouped(shown), grouped(response.total));
        remarks.push(format!("{shown} of {total} in test files; {}", more(response, options)));
    }
    let boundary = response.coverage.path_boundary_edges;
    if boundary > 0 {
        remarks.push(format!("{} outside the path", counted(boundary, "relation")));
    }
    let failed = response.coverage.failed_files;
    if failed > 0 {
        remarks.push(format!("{} could not be parsed: uses in there are not known", counted(failed, "file")));
    }
    remarks.extend(super::references::unread_remark(&response.limitations));
    if has(DEPTH_LIMIT) || has(NODE_LIMIT) || has(TRAVERSAL_LIMIT) {
        remarks.push("the change reaches further than one answer follows: other tests may use it, too".to_owned());
    }
    let unfollowed: Vec<&str> = [
        ("fixtures_not_followed", "fixtures"),
        ("parametrization_not_followed", "parametrization"),
        ("plugins_not_followed", "plugins"),
    ]
    .into_iter()
    .filter(|(word, _)| has(word))
    .map(|(_, name)| name)
    .collect();
    if !unfollowed.is_empty() {
        remarks.push(format!(
            "not followed: {}; a test that meets the change only through these is not found",
            unfollowed.join(", ")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{check, item, response};
    use super::*;
    use crate::query::response::{Status, WitnessEdge};

    fn edge(kind: EdgeKind, line: u32, resolution: Resolution) -> WitnessEdge {
        WitnessEdge {
            source_id: String::new(),
            target_id: String::new(),
            kind,
            resolution,
            rule_id: Arc::from("receiver_hint"),
            reference_key: None,
            path: Arc::from("a.py"),
            line,
        }
    }

    /// A user of what `via` names, nearest to the seed first.
    fn user(name: &str, kind: EdgeKind, via: &[&str], resolution: Resolution, through: bool) -> Item {
        let mut item = item("a.py", 7, SymbolKind::Function, name, "a");
        let mut path: Vec<WitnessEdge> = via.iter().map(|_| edge(EdgeKind::Calls, 1, Resolution::ResolvedStatic)).collect();
        if through {
            path[0].kind = EdgeKind::Contains;
        }
        path.pop();
        path.push(edge(kind, 3, resolution));
        item.witness_path = Some(path);
        item.via = via.iter().map(|name| (*name).to_owned()).collect();
        item.resolution = Some(resolution);
        item.through = through;
        item
    }

    #[test]
    fn three_groups_and_the_way_back() {
        let subject = item("b.py", 1, SymbolKind::Method, "C.m", "b");
        let sure = Resolution::ResolvedStatic;
        let mut items = vec![
            user("f", EdgeKind::Calls, &["b.C.m"], sure, false),
            user("g", EdgeKind::References, &["b.C.m", "a.f"], sure, false),
            user("far", EdgeKind::Calls, &["b.C.m", "a.f", "a.g", "a.h"], sure, false),
            user("C", EdgeKind::Contains, &["b.C.m"], sure, true),
            user("D", EdgeKind::Inherits, &["b.C.m", "b.C"], sure, true),
            user("maybe", EdgeKind::Calls, &["b.C.m"], Resolution::Candidate, false),
        ];
        items[0].site_lines = vec![3, 5];
        let mut answer = response("impact", Some(subject.clone()), items);
        answer.total = 5;
        answer.status = Status::Partial;
        answer.limitations = vec![DEPTH_LIMIT.to_owned()];
        answer.coverage.unresolved_mentions = Some(2);
        check(
            &answer,
            "certain:\n  \
               a.py:3 f calls b.C.m  resolved_static  also :5\n  \
               a.py:3 g references a.f → b.C.m  resolved_static\n  \
               a.py:3 far calls a.h → a.g → … → b.C.m  resolved_static\n\
             possible, through candidates:\n  \
               a.py:3 maybe calls b.C.m  candidate receiver_hint\n\
             weaker, through the class or file around a user, or its importers:\n  \
               a.py:3 D inherits b.C ⊃ b.C.m  resolved_static\n\
             2 uses named `m` could not be bound: they may mean it or another\n\
             more lies deeper; --depth goes further\n",
        );
        // Nobody is sent to a flag that is at its end.
        answer.deepest = true;
        answer.total = 0;
        answer.items.truncate(1);
        check(
            &answer,
            "certain:\n  \
               a.py:3 f calls b.C.m  resolved_static  also :5\n\
             2 uses named `m` could not be bound: they may mean it or another\n\
             it reaches further than one answer follows\n",
        );
        answer.items.clear();
        answer.deepest = false;
        answer.total = 5;
        answer.coverage.unresolved_mentions = None;
        check(&answer, "0 of 5; --limit shows more\nmore lies deeper; --depth goes further\n");
        check(&response("impact", Some(subject), Vec::new()), "no use found of b.C.m (b.py:1)\n");
    }
}
