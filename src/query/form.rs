//! The form of requests as types, from which descriptions of the wire are generated.
//!
//! Must not parse: [`super::request::parse`] does, and says more than a form can. Invariant: what the form does not allow is refused, and
//! bounds and defaults are the same constants.

use schemars::JsonSchema;
use serde::Deserialize;

use super::request::{
    DEFAULT_BYTES, DEFAULT_DEPTH, DEFAULT_LIMIT, MAX_BYTES, MAX_DEPTH, MAX_LIMIT, MAX_NAME, MAX_PATHS, MAX_QUERY, MAX_SYMBOL,
    MIN_BYTES,
};

/// A question about the code of a scope.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CodeQueryRequest")]
pub struct RequestForm {
    pub operation: OperationForm,
    /// The only index that may answer.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub expected_fingerprint: Option<String>,
    /// The index to compare with, for `impact_changes`.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub before_fingerprint: Option<String>,
    /// Bound of the whole answer in bytes.
    #[serde(default = "default_bytes")]
    #[schemars(range(min = MIN_BYTES, max = MAX_BYTES))]
    pub max_bytes: usize,
}

/// What is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "CodeOperation")]
pub enum OperationForm {
    Status {},
    Map {
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_depth")]
        #[schemars(range(min = 1, max = MAX_DEPTH))]
        depth: u32,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Symbols {
        #[schemars(length(min = 1, max = MAX_QUERY))]
        query: String,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Explore {
        #[schemars(length(min = 1, max = MAX_QUERY))]
        query: String,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Callers {
        #[schemars(length(min = 1, max = MAX_SYMBOL))]
        symbol_id: String,
        #[serde(default = "default_depth")]
        #[schemars(range(min = 1, max = MAX_DEPTH))]
        depth: u32,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Callees {
        #[schemars(length(min = 1, max = MAX_SYMBOL))]
        symbol_id: String,
        #[serde(default = "default_depth")]
        #[schemars(range(min = 1, max = MAX_DEPTH))]
        depth: u32,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Impact {
        #[schemars(length(min = 1, max = MAX_SYMBOL))]
        symbol_id: String,
        #[serde(default = "default_depth")]
        #[schemars(range(min = 1, max = MAX_DEPTH))]
        depth: u32,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    AffectedTests {
        #[schemars(length(min = 1, max = MAX_PATHS))]
        paths: Vec<String>,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Read {
        path: String,
        #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
        file_sha256: String,
        #[schemars(range(min = 1))]
        start_line: u64,
        #[schemars(range(min = 1))]
        end_line: u64,
    },
    Changes {},
    ImpactChanges {
        #[schemars(length(min = 1, max = MAX_PATHS))]
        paths: Vec<String>,
        #[serde(default)]
        path_prefix: String,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
    Diagnostics {
        #[serde(default)]
        path: String,
        #[schemars(length(min = 1, max = MAX_SYMBOL))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        symbol_id: Option<String>,
        #[schemars(length(min = 1, max = MAX_NAME))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        name: Option<String>,
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = MAX_LIMIT))]
        limit: usize,
    },
}

fn default_bytes() -> usize {
    DEFAULT_BYTES
}

fn default_depth() -> u32 {
    DEFAULT_DEPTH
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::OPERATIONS;
    use crate::query::request::parse;

    #[test]
    fn what_is_parsed_has_the_form() {
        let hash = "0".repeat(64);
        let fingerprint = format!(r#","expected_fingerprint":"{hash}""#);
        let check = |operation: &str, more: &str, fits: bool| {
            let body = format!(r#"{{"operation":{{{operation}}}{more}}}"#);
            assert_eq!(parse(body.as_bytes()).is_ok(), fits, "parsed: {body}");
            let form: Result<RequestForm, _> = serde_json::from_str(&body);
            assert_eq!(form.is_ok(), fits, "form: {body}");
            if let (Ok(form), Ok(request)) = (form, parse(body.as_bytes())) {
                assert_eq!(form.max_bytes, request.max_bytes);
                assert_eq!(form.expected_fingerprint, request.expected_fingerprint.map(|fingerprint| fingerprint.hex()));
            }
        };
        check(r#""kind":"status""#, "", true);
        check(r#""kind":"status""#, r#","max_bytes":600"#, true);
        check(r#""kind":"status","depth":1"#, "", false);
        check(r#""kind":"map""#, "", true);
        check(r#""kind":"map","depth":3,"limit":7,"path_prefix":"a""#, "", true);
        check(r#""kind":"map","limit":"7""#, "", false);
        check(r#""kind":"symbols","query":"f""#, "", true);
        check(r#""kind":"symbols""#, "", false);
        check(r#""kind":"explore","query":"f","limit":3"#, r#","before_fingerprint":null"#, true);
        for kind in ["callers", "callees", "impact"] {
            check(&format!(r#""kind":"{kind}","symbol_id":"x","depth":5"#), &fingerprint, true);
            check(&format!(r#""kind":"{kind}""#), &fingerprint, false);
        }
        check(r#""kind":"affected_tests","paths":["a"]"#, &fingerprint, true);
        check(r#""kind":"affected_tests","paths":"a""#, &fingerprint, false);
        check(&format!(r#""kind":"read","path":"a","file_sha256":"{hash}","start_line":1,"end_line":2"#), &fingerprint, true);
        check(r#""kind":"changes""#, "", true);
        check(r#""kind":"impact_changes","paths":["a"]"#, &format!(r#"{fingerprint},"before_fingerprint":"{hash}""#), true);
        check(r#""kind":"diagnostics""#, "", true);
        check(r#""kind":"diagnostics","name":"f","path":"a""#, "", true);
        check(r#""kind":"nosuch""#, "", false);
        check(r#""kind":"status""#, r#","more":1"#, false);
    }

    #[test]
    fn the_schema_knows_every_operation_and_bound() {
        let schema = schemars::schema_for!(RequestForm).to_value();
        let form = schema["$defs"]["CodeOperation"].clone();
        let kinds: Vec<&str> = form["oneOf"]
            .as_array()
            .expect("a choice")
            .iter()
            .filter_map(|form| form["properties"]["kind"]["const"].as_str())
            .collect();
        assert_eq!(kinds, OPERATIONS);
        let bytes = &schema["properties"]["max_bytes"];
        assert_eq!(
            (&bytes["minimum"], &bytes["maximum"], &bytes["default"]),
            (&512.into(), &32_768.into(), &16_000.into()),
            "{bytes}"
        );
    }
}
