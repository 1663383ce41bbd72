//! The byte budget over whole answers: every operation on random generations, at every size that the contract allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::budget::{BudgetTooSmall, fit};
use super::json::encode;
use crate::model::{ContentHash, PathPrefix, RepoPath, SymbolKind};
use crate::query::request::{MAX_BYTES, MAX_LIMIT, MIN_BYTES, Paths, References, Relation};
use crate::query::response::{OUTPUT_BUDGET, Status};
use crate::query::tests::graph::{self, Dice};
use crate::query::tests::{ask_between, ask_within};
use crate::query::{Operation, Request, Response};
use crate::store::{Generation, NodeRow};

/// Every operation that is answered from one generation, on targets that the generation has.
fn operations(generation: &Generation, dice: &mut Dice, limit: usize) -> Vec<Operation> {
    let prefix = PathPrefix::default();
    let (nodes, _) = generation.map(&prefix, 5, 10_000).expect("readable");
    let files: Vec<&NodeRow> = nodes.iter().filter(|node| node.kind == SymbolKind::File).collect();
    // A definition that is used more than others tells more of a budget.
    let busiest = nodes.iter().max_by_key(|node| generation.in_degree(node.id, &crate::query::reach::USES).expect("readable"));
    let busiest = busiest.expect("there are nodes");
    let relation = |node: &NodeRow, depth| Relation { symbol_id: node.symbol.hex(), depth, prefix: PathPrefix::default(), limit };
    let file = files[dice.roll(files.len())];
    let path = |node: &NodeRow| RepoPath::parse(&node.path).expect("it was stored");
    let source = files.iter().find(|file| !file.test).unwrap_or(&file);
    vec![
        Operation::Map { prefix: prefix.clone(), depth: 5, limit },
        Operation::Symbols { query: "f1 m0".to_owned(), prefix: prefix.clone(), limit },
        Operation::Symbols { query: "fx1y".to_owned(), prefix: prefix.clone(), limit },
        Operation::Explore { query: "what do f0 and C0 do".to_owned(), prefix: prefix.clone(), limit },
        Operation::Callers(relation(busiest, 1)),
        Operation::Callees(relation(busiest, 1)),
        Operation::Impact(relation(busiest, 2)),
        Operation::Impact(relation(file, 5)),
        Operation::Diagnostics(References { path: prefix.clone(), symbol_id: None, name: Some(busiest.name.to_string()), limit }),
        Operation::AffectedTests(Paths { paths: vec![path(source)], prefix, limit }),
        Operation::Read { path: path(file), file_sha256: file.file_hash, start_line: 1, end_line: limit as u64 * 4 },
    ]
}

/// What every answer must hold, whatever its size.
struct Law<'g> {
    generation: &'g Generation,
    /// The generation compared with.
    before: Option<&'g Generation>,
    sources: BTreeMap<(bool, String), Vec<String>>,
}

impl Law<'_> {
    /// Checks a body that was cut to `max_bytes` against the answer without any budget.
    fn check(&mut self, body: &str, max_bytes: usize, whole: &Response, whole_body: &str) {
        assert!(body.len() <= max_bytes, "{} > {max_bytes}", body.len());
        let value: Value = serde_json::from_str(body).expect("valid JSON");
        let items = value["items"].as_array().expect("a list");
        let words: BTreeSet<&str> = value["limitations"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        if body.len() < whole_body.len() {
            assert_eq!(value["status"], "partial", "{max_bytes}: something is missing");
            assert!(words.contains(OUTPUT_BUDGET), "{max_bytes}: {words:?}");
        }
        assert!(items.len() <= whole.items.len());
        for (item, of) in items.iter().zip(&whole.items) {
            // Citations stay whole, and items in their order.
            assert_eq!(item["path"], *of.path);
            assert_eq!(item["id"].as_str().map(str::to_owned), of.id.map(|id| id.hex()));
            assert_eq!(item["file_sha256"].as_str().map(str::to_owned), of.file_sha256.map(|hash| hash.hex()));
            let path = serde_json::to_value(&of.witness_path).expect("a value");
            assert_eq!(item["witness_path"], path);
            if let Some(last) = item["witness_path"].as_array().and_then(|path| path.last())
                && value["operation"] != "callees"
                && item["role"] != "callee"
            {
                assert_eq!(last["source_id"], item["id"]);
            }
            self.check_source(item);
        }
    }

    /// Checks that the content is the lines it says, whole, and its digest.
    fn check_source(&mut self, item: &Value) {
        let Some(content) = item["content"].as_str() else {
            assert!(item["snippet_sha256"].is_null(), "{item}");
            return;
        };
        let path = item["path"].as_str().expect("a path").to_owned();
        let is_before = item["generation"] == "before";
        let generation = if is_before { self.before.expect("there is one") } else { self.generation };
        let lines = self.sources.entry((is_before, path.clone())).or_insert_with(|| {
            let bytes = generation.source(&path).expect("readable").expect("captured");
            String::from_utf8(bytes.to_vec()).expect("UTF-8").split_inclusive('\n').map(str::to_owned).collect()
        });
        let line = |name: &str| item[name].as_u64().expect("a number") as usize;
        assert_eq!(content, lines[line("start_line") - 1..line("end_line")].concat(), "{path}");
        assert_eq!(item["snippet_sha256"], ContentHash::of(content.as_bytes()).hex());
    }
}

/// Fits one response into each size; returns how many different bodies came of it.
fn check_sizes(law: &mut Law<'_>, response: &Response, sizes: impl Iterator<Item = usize>) -> usize {
    let whole = super::budget::unbounded(response.clone());
    let whole_body = encode(&whole);
    let (mut last, mut different, mut least) = (String::new(), 0, None);
    for max_bytes in sizes {
        match fit(response.clone(), max_bytes) {
            Ok(answer) => {
                let body = encode(&answer);
                if body == last {
                    assert!(body.len() <= max_bytes);
                    continue;
                }
                law.check(&body, max_bytes, &whole, &whole_body);
                assert!(answer.status == Status::Partial || body == whole_body);
                different += 1;
                last = body;
            }
            Err(BudgetTooSmall { needed, max_bytes: told }) => {
                assert!(needed > max_bytes && told == max_bytes, "{needed} fits");
                assert!(last.is_empty(), "more room takes nothing away");
                assert_eq!(*least.get_or_insert(needed), needed, "what is needed does not depend on what there is");
            }
        }
    }
    if let Some(needed) = least {
        assert!(encode(&fit(response.clone(), needed).expect("as much as it said")).len() <= needed);
        assert!(fit(response.clone(), needed - 1).is_err(), "less would have been enough");
    }
    different
}

#[test]
fn the_budget_holds_for_every_operation() {
    let mut dice = Dice(0x5e_7a_27);
    let mut different = 0;
    for _ in 0..3 {
        graph::with_graph(graph::random(&mut dice, 12), |generation| {
            let mut law = Law { generation, before: None, sources: BTreeMap::new() };
            for operation in operations(generation, &mut dice, MAX_LIMIT) {
                let request = Request::new(operation);
                let response = ask_within(generation, &request).expect("answered");
                let sizes = (MIN_BYTES..=MAX_BYTES).step_by(601 + dice.roll(600)).chain([MAX_BYTES]);
                different += check_sizes(&mut law, &response, sizes);
                // The operation itself may choose by the budget.
                for _ in 0..4 {
                    let most = [4_000, MAX_BYTES - MIN_BYTES][dice.roll(2)];
                    let max_bytes = MIN_BYTES + dice.roll(most);
                    let request = Request { max_bytes, ..request.clone() };
                    let response = ask_within(generation, &request).expect("answered");
                    different += check_sizes(&mut law, &response, std::iter::once(max_bytes));
                }
            }
        });
    }
    assert!(different > 150, "only {different} different answers were seen");
}

#[test]
fn the_budget_holds_for_every_comparison() {
    let mut dice = Dice(0xc0_4a_4e);
    let mut different = 0;
    for _ in 0..3 {
        let drawn = graph::random(&mut dice, 10);
        let later = graph::altered(&mut dice, &drawn);
        graph::with_graph(drawn, |before| {
            graph::with_graph(later, |after| {
                let mut law = Law { generation: after, before: Some(before), sources: BTreeMap::new() };
                for operation in comparisons(before, after, MAX_LIMIT) {
                    for _ in 0..4 {
                        let max_bytes = MIN_BYTES + dice.roll(MAX_BYTES - MIN_BYTES);
                        for max_bytes in [max_bytes, MAX_BYTES] {
                            let request = Request { max_bytes, ..Request::new(operation.clone()) };
                            let response = ask_between(before, after, &request).expect("answered");
                            let sizes = (MIN_BYTES..=max_bytes).step_by(601 + dice.roll(600)).chain([max_bytes]);
                            different += check_sizes(&mut law, &response, sizes);
                        }
                    }
                }
            });
        });
    }
    assert!(different > 60, "only {different} different answers were seen");
}

/// The operations that compare, on all that changed.
fn comparisons(before: &Generation, after: &Generation, limit: usize) -> Vec<Operation> {
    let differing = crate::query::differing(before, after).expect("readable");
    let paths: Vec<RepoPath> = differing.iter().map(|file| RepoPath::parse(&file.path).expect("it was stored")).collect();
    assert!(!paths.is_empty(), "nothing changed");
    vec![Operation::Changes, Operation::ImpactChanges(Paths { paths, prefix: PathPrefix::default(), limit })]
}

#[test]
fn the_budget_holds_at_every_size_of_a_comparison() {
    let mut dice = Dice(0xd1f);
    let drawn = graph::random(&mut dice, 4);
    let later = graph::altered(&mut dice, &drawn);
    graph::with_graph(drawn, |before| {
        graph::with_graph(later, |after| {
            let mut law = Law { generation: after, before: Some(before), sources: BTreeMap::new() };
            for operation in comparisons(before, after, 3) {
                let response = ask_between(before, after, &Request::new(operation)).expect("answered");
                let whole = encode(&super::budget::unbounded(response.clone())).len();
                check_sizes(&mut law, &response, (MIN_BYTES..=MAX_BYTES.min(whole + 1)).chain([MAX_BYTES]));
            }
        });
    });
}

#[test]
fn the_budget_holds_at_every_size() {
    let mut dice = Dice(0xb17e);
    graph::with_graph(graph::random(&mut dice, 3), |generation| {
        let mut law = Law { generation, before: None, sources: BTreeMap::new() };
        for operation in operations(generation, &mut dice, 2) {
            let response = ask_within(generation, &Request::new(operation)).expect("answered");
            let whole = encode(&super::budget::unbounded(response.clone())).len();
            // Beyond the whole answer nothing changes.
            check_sizes(&mut law, &response, (MIN_BYTES..=MAX_BYTES.min(whole + 1)).chain([MAX_BYTES]));
        }
    });
}
