//! The API's description, made from the routes and the types that they carry.

use axum::Json;
use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::routes::{Answer, OPEN, Route, routes};
use crate::api::{CLIENT, ClientFrame, ErrorBody, IDEMPOTENCY_KEY, ServerFrame, path};

pub(super) async fn serve() -> Json<Value> {
    Json(document())
}

/// The whole description, OpenAPI 3.1.
pub(super) fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for route in routes() {
        let operation = operation(&route, &mut schemas);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "klbr", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": "Not done, and why",
                    "content": { "application/json": { "schema": problem } },
                },
            },
        },
    })
}

const DESCRIPTION: &str = "Agents that never stop running. Instants are UTC milliseconds. The token stands in the file \
                           `token` of the home.";

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters(route, schemas),
        "responses": { "default": { "$ref": "#/components/responses/Problem" } },
    });
    let (status, answer) = match &route.answer {
        Answer::Json(schema) => ("200", json!({ "application/json": { "schema": schema(schemas) } })),
        Answer::Text(kind) => ("200", json!({ *kind: { "schema": { "type": "string" } } })),
        Answer::Events(schema) => ("200", json!({ "text/event-stream": { "schema": schema(schemas) } })),
        Answer::Upgrade => ("101", Value::Null),
    };
    let mut response = json!({ "description": if status == "101" { "A WebSocket" } else { "Done" } });
    if matches!(route.answer, Answer::Upgrade) {
        response["x-klbr-frames"] = json!({
            "client": schemas.subschema_for::<ClientFrame>(),
            "server": schemas.subschema_for::<ServerFrame>(),
        });
    }
    if !answer.is_null() {
        response["content"] = answer;
    }
    operation["responses"][status] = response;
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body(schemas) } } });
    }
    if OPEN.contains(&route.path) {
        operation["security"] = json!([]);
    }
    operation
}

fn parameters(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let parameter = |name: &str, place: &str, required: bool, schema: Value| json!({ "name": name, "in": place, "required": required, "schema": schema });
    let text = || json!({ "type": "string" });
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path.map(|name| parameter(name, "path", true, text())).collect();
    if let Some(query) = route.query {
        let schema = query(schemas).to_value();
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        parameters.extend(
            properties.map(|(name, schema)| parameter(name, "query", required(name), schema.clone())),
        );
    }
    if route.admits {
        parameters.push(parameter(IDEMPOTENCY_KEY, "header", false, text()));
        parameters.push(parameter(CLIENT, "header", false, text()));
    }
    if route.method == Method::GET && [path::EVENTS, path::WS].contains(&route.path) {
        parameters.push(parameter("last-event-id", "header", false, text()));
    }
    Value::Array(parameters)
}
