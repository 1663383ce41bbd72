//! The JSON schemas of the tools, made from their declarations.
//!
//! Must not know more of a tool than its declaration. Invariant: an input schema is one plain object: each property has one type, and
//! there is no union, no reference and no schema beside another; hosts drop or refuse tools with such.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::tools::{Declaration, Gives, Kind, Parameter, TOOLS};

/// Returns the tools as they are listed.
pub fn listed() -> Vec<Tool> {
    TOOLS.iter().map(tool).collect()
}

fn tool(declaration: &'static Declaration) -> Tool {
    let mut annotations = ToolAnnotations::with_title(declaration.title).read_only(declaration.is_read_only).open_world(false);
    if !declaration.is_read_only {
        annotations = annotations.destructive(false).idempotent(true);
    }
    Tool::new(declaration.name, declaration.description, input(declaration))
        .with_title(declaration.title)
        .with_raw_output_schema(output(declaration.gives).into())
        .with_annotations(annotations)
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn input(declaration: &Declaration) -> JsonObject {
    let properties: JsonObject =
        declaration.parameters.iter().map(|parameter| (parameter.name.to_owned(), property(parameter))).collect();
    let required: Vec<&str> =
        declaration.parameters.iter().filter(|parameter| parameter.is_required).map(|parameter| parameter.name).collect();
    let mut schema = object(json!({ "type": "object", "properties": properties }));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

fn property(parameter: &Parameter) -> Value {
    let mut schema = match parameter.kind {
        Kind::Text { most } => json!({ "type": "string", "minLength": 1, "maxLength": most }),
        Kind::Texts { most } => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": most }),
        Kind::Number { least, most, default } => {
            json!({ "type": "integer", "minimum": least, "maximum": most, "default": default })
        }
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean", "default": false }),
    };
    schema["description"] = json!(parameter.description);
    schema
}

/// Names of fields by what they hold.
struct Fields {
    texts: &'static [&'static str],
    /// With what their elements are.
    lists: &'static [(&'static str, &'static str)],
    numbers: &'static [&'static str],
    flags: &'static [&'static str],
    /// Objects, and what may be null.
    others: &'static [&'static str],
}

/// Returns the schema of what comes back: the fields of the wire contract, and their types. Fields that may be null have no type, as a type
/// beside null would be a union.
fn output(gives: Gives) -> JsonObject {
    let Fields { texts, lists, numbers, flags, others } = match gives {
        Gives::Answer => Fields {
            texts: &["schema", "scope_id", "fingerprint", "git_object_format", "checked_at", "operation", "status"],
            lists: &[("items", "object"), ("limitations", "string")],
            numbers: &[],
            flags: &["dirty"],
            others: &["before_fingerprint", "commit", "coverage"],
        },
        Gives::Status => Fields {
            texts: &["schema", "scope_id", "status", "freshness", "engine"],
            lists: &[("languages", "string"), ("operations", "string")],
            numbers: &[],
            flags: &[],
            others: &["fingerprint", "last_build", "reason"],
        },
        Gives::Build => Fields {
            texts: &["status", "fingerprint"],
            lists: &[("failures", "object"), ("stages", "object")],
            numbers: &[
                "extracted_files",
                "reused_files",
                "removed_files",
                "resolved_files",
                "elapsed_seconds",
                "files",
                "definitions",
                "edges",
                "diagnostics",
                "partial_files",
                "failed_files",
            ],
            flags: &["published"],
            others: &["peak_memory_bytes", "verified"],
        },
    };
    let mut properties = JsonObject::new();
    let mut add = |names: &[&str], schema: Value| {
        properties.extend(names.iter().map(|name| ((*name).to_owned(), schema.clone())));
    };
    add(texts, json!({ "type": "string" }));
    lists.iter().for_each(|(name, of)| add(&[name], json!({ "type": "array", "items": { "type": of } })));
    add(numbers, json!({ "type": "number" }));
    add(flags, json!({ "type": "boolean" }));
    add(others, json!({}));
    let error = json!({
        "type": "object",
        "description": "Alone, where there is no answer",
        "properties": { "code": { "type": "string" }, "message": { "type": "string" }, "hint": { "type": "string" } },
        "required": ["code", "message"],
    });
    add(&["error"], error);
    object(json!({ "type": "object", "properties": properties }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns where a schema holds what hosts choke on.
    fn unfit(schema: &Value, place: &str, is_input: bool, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let at = format!("{place}/{name}");
                    let is_named = place.ends_with("/properties");
                    let banned = [
                        "$ref",
                        "$defs",
                        "definitions",
                        "anyOf",
                        "oneOf",
                        "allOf",
                        "not",
                        "if",
                        "const",
                        "patternProperties",
                        "format",
                    ];
                    if !is_named && banned.contains(&name.as_str()) {
                        found.push(at.clone());
                    }
                    if !is_named && name == "type" && !value.is_string() {
                        found.push(format!("{at} is a union"));
                    }
                    if is_named && is_input && (value.get("type").is_none() || value.get("description").is_none()) {
                        found.push(format!("{at} has no type or no description"));
                    }
                    unfit(value, &at, is_input, found);
                }
            }
            Value::Array(values) => {
                values.iter().for_each(|value| unfit(value, place, is_input, found));
            }
            _ => {}
        }
    }

    #[test]
    fn schemas_are_plain_objects() {
        let mut found = Vec::new();
        for tool in listed() {
            let json = serde_json::to_value(&tool).expect("JSON");
            for (name, is_input) in [("inputSchema", true), ("outputSchema", false)] {
                assert_eq!(json[name]["type"], "object", "{}", tool.name);
                unfit(&json[name], &format!("{}/{name}", tool.name), is_input, &mut found);
            }
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn tools_are_named_described_and_marked() {
        let tools = listed();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["explore", "symbols", "relations", "tests", "read", "changes", "status", "sync"]);
        for (tool, declaration) in tools.iter().zip(TOOLS) {
            let description = tool.description.as_deref().unwrap_or_default();
            assert!((100..2048).contains(&description.len()), "{}: {}", tool.name, description.len());
            let annotations = tool.annotations.as_ref().expect("annotations");
            assert_eq!(annotations.read_only_hint, Some(tool.name != "sync"), "{}", tool.name);
            assert_eq!(annotations.open_world_hint, Some(false), "{}", tool.name);
            let parameters: BTreeSet<&str> = declaration.parameters.iter().map(|parameter| parameter.name).collect();
            assert_eq!(parameters.len(), declaration.parameters.len(), "{} takes each argument once", tool.name);
            assert!(parameters.contains("root") && parameters.contains("scope"), "{}", tool.name);
        }
        let whole = serde_json::to_string(&tools).expect("JSON");
        assert!(whole.len() < 18_000, "a client keeps all of it in its context: {} bytes", whole.len());
    }
}
