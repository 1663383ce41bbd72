//! The description of the routes, generated from the types that are written and read.
//!
//! Must not know how anything is answered. Invariant: equal builds give equal text.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::engine::Status;
use crate::query::Response;
use crate::query::form::RequestForm;
use crate::render::json::Build;

use super::refusal::{ErrorBody, Refusal};
use super::routes::ScopePage;

/// The answer to a question: a response, or for `status` the status.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "CodeQueryResponse")]
#[expect(dead_code, reason = "what is answered is written as the one or the other")]
enum Answer {
    Response(Box<Response>),
    Status(Box<Status>),
}

/// Returns the OpenAPI document.
pub fn document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| describe().to_string())
}

/// Both kinds of schemas, of what is written and of what is read.
struct Schemas {
    written: SchemaGenerator,
    read: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let at = |mut settings: SchemaSettings| {
            settings.definitions_path = "/components/schemas".into();
            settings.into_generator()
        };
        Self {
            written: at(SchemaSettings::draft2020_12().for_serialize()),
            read: at(SchemaSettings::draft2020_12().for_deserialize()),
        }
    }

    fn written<T: JsonSchema>(&mut self) -> Value {
        self.written.subschema_for::<T>().to_value()
    }

    fn read<T: JsonSchema>(&mut self) -> Value {
        self.read.subschema_for::<T>().to_value()
    }

    fn into_definitions(mut self) -> Value {
        let mut all: BTreeMap<String, Value> = self.written.take_definitions(true).into_iter().collect();
        all.extend(self.read.take_definitions(true));
        json!(all)
    }
}

fn describe() -> Value {
    let mut schemas = Schemas::new();
    let error = schemas.written::<ErrorBody<'_>>();
    let id =
        json!({ "X-PowerContext-Request-ID": { "schema": { "type": "string" }, "description": "Of the request, for logs." } });
    let answer = |description: &str, schema: Value| json!({ "description": description, "headers": id, "content": { "application/json": { "schema": schema } } });
    let with = |good: Value, statuses: &[u16]| {
        let mut responses = serde_json::Map::from_iter([("200".to_owned(), good)]);
        for status in statuses {
            let reason = axum::http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
            responses.insert(status.to_string(), answer(reason.unwrap_or_default(), error.clone()));
        }
        Value::Object(responses)
    };
    let all: Vec<u16> = Refusal::statuses().into_iter().filter(|status| !matches!(status, 400 | 404 | 405 | 431)).collect();
    let looking = [401, 403, 422, 500, 503];
    let scope = json!([{ "name": "scope_id", "in": "path", "required": true, "schema": { "type": "string" } }]);
    let query = json!({
        "operationId": "query_code",
        "summary": "Answer a question about the code of a scope, checked against its worktree",
        "parameters": scope,
        "requestBody": { "required": true, "content": { "application/json": { "schema": schemas.read::<RequestForm>() } } },
        "responses": with(answer("What was found.", schemas.written::<Answer>()), &all),
    });
    let status = json!({
        "operationId": "code_status",
        "summary": "Say what is indexed and whether it equals the worktree",
        "parameters": scope,
        "responses": with(answer("How the scope is.", schemas.written::<Status>()), &looking),
    });
    let sync = json!({
        "operationId": "sync_code",
        "summary": "Bring the index of a scope up to date; needs the right `code.manage`",
        "parameters": scope,
        "requestBody": {
            "required": false,
            "content": { "application/json": { "schema": { "type": "object", "additionalProperties": false } } },
        },
        "responses": with(answer("What the build did.", schemas.written::<Build<'_>>()), &all),
    });
    let scopes = json!({
        "operationId": "list_scopes",
        "summary": "List the scopes that may be read",
        "responses": with(answer("The scopes, by name.", schemas.written::<ScopePage>()), &[401, 403]),
    });
    let open = json!([]);
    let health = json!({
        "operationId": "health",
        "summary": "Say that the service lives",
        "security": open,
        "responses": { "200": answer("It does.", json!({
            "type": "object", "properties": { "status": { "const": "ok" } }, "required": ["status"],
        })) },
    });
    let metrics = json!({
        "operationId": "metrics",
        "summary": "Give counts and durations as Prometheus reads them",
        "responses": { "200": { "description": "The figures.", "content": { "application/openmetrics-text": {
            "schema": { "type": "string" },
        } } } },
    });
    let document = json!({
        "operationId": "openapi",
        "summary": "Give this document",
        "security": open,
        "responses": { "200": answer("This document.", json!({ "type": "object" })) },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sextant",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Questions about the code of worktrees, each checked against the disk before it is answered.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "security": [{ "bearer": [] }, {}],
        "paths": {
            "/v1/scopes": { "get": scopes },
            "/v1/scopes/{scope_id}/code/query": { "post": query },
            "/v1/scopes/{scope_id}/code/status": { "get": status },
            "/v1/scopes/{scope_id}/code/sync": { "post": sync },
            "/healthz": { "get": health },
            "/metrics": { "get": metrics },
            "/openapi.json": { "get": document },
        },
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas.into_definitions(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document: Value = serde_json::from_str(document()).expect("JSON");
        let mut open = vec![&document];
        let mut references = 0;
        while let Some(value) = open.pop() {
            match value {
                Value::Array(values) => open.extend(values),
                Value::Object(fields) => {
                    if let Some(Value::String(target)) = fields.get("$ref") {
                        references += 1;
                        let found = target.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                        assert!(found.is_some(), "{target}");
                    }
                    open.extend(fields.values());
                }
                _ => {}
            }
        }
        assert!(references > 20, "{references}");
        assert_eq!(document["paths"]["/v1/scopes/{scope_id}/code/query"]["post"]["operationId"], "query_code");
    }
}
