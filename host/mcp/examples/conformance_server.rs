//! Offers the tools that the official conformance suite calls, over Streamable HTTP:
//! `cargo run -p hotcell-mcp --example conformance_server -- 3001`, then
//! `npx @modelcontextprotocol/conformance server --url http://localhost:3001/mcp`. With `stdio` in place of the port it
//! serves over standard input and output.

#![expect(clippy::print_stdout, reason = "says where it listens")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hotcell_mcp::{
    Answer, Asked, Asks, CallContext, Called, Calling, Catalog, CatalogError, Client, Content, Elicited, HttpSettings,
    Identity, LogLevel, OfferedTool, serve_http, serve_stdio,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// An image of one red pixel, and a sound of nothing.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

struct Suite;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn offered(name: &str, schema: Value) -> OfferedTool {
    OfferedTool {
        name: name.to_owned(),
        title: None,
        description: format!("Does what the scenario of `{name}` describes"),
        input_schema: object(schema),
        output_schema: None,
        read_only: false,
        open_world: false,
    }
}

fn document(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::Document { uri: uri.to_owned(), mime_type: mime_type.to_owned(), text: text.to_owned() }
}

fn image() -> Content {
    Content::Image { mime_type: "image/png".to_owned(), data: PIXEL.to_owned() }
}

fn of(content: Vec<Content>) -> Called {
    Called { content, ..Called::text("") }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn ask(context: &CallContext, start: &str, message: &str, properties: Value, required: Value) -> Called {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let (action, content) = match context.elicit(message, schema).await {
        Ok(Elicited::Accept(content)) => ("accept", content),
        Ok(Elicited::Decline) => ("decline", json!({})),
        Ok(Elicited::Cancel) => ("cancel", json!({})),
        Err(error) => return Called::failed(error.to_string()),
    };
    Called::text(format!("{start}: action={action}, content={content}"))
}

/// A field of the answer to a question that was put as the result of a call.
fn answered<'a>(context: &'a CallContext, question: &str, field: &str) -> Option<&'a Value> {
    match context.going_on().answers.get(question)? {
        Elicited::Accept(form) => form.get(field),
        Elicited::Decline | Elicited::Cancel => None,
    }
}

/// Asks one question with one field, as the result of a call.
fn later(id: &str, message: &str, field: &str, kind: &str, state: &str) -> Answer {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    let questions = vec![Asked { id: id.to_owned(), message: message.to_owned(), schema }];
    Answer::Asks(Asks { questions, state: state.to_owned() })
}

/// The tools that ask by the result of a call.
fn call_later(name: &str, context: &CallContext) -> Result<Answer, CatalogError> {
    let state = context.going_on().state.as_deref();
    let forged = || CatalogError::InvalidState("`requestState` was changed".to_owned());
    Ok(match name {
        "test_input_required_result_elicitation" => {
            match answered(context, "user_name", "name").and_then(Value::as_str) {
                Some(name) => Called::text(format!("Hello, {name}!")).into(),
                None => later("user_name", "What is your name?", "name", "string", "name"),
            }
        }
        "test_input_required_result_multi_round" => match state {
            None => later("step1", "Step 1: What is your name?", "name", "string", "one"),
            Some("one") => later("step2", "Step 2: What is your favorite color?", "color", "string", "two"),
            Some("two") => Called::text("Both steps are done.").into(),
            Some(_) => return Err(forged()),
        },
        _ => match state {
            None => later("confirm", "Please confirm", "ok", "boolean", "asked"),
            Some("asked") => Called::text("state-ok").into(),
            Some(_) => return Err(forged()),
        },
    })
}

impl Catalog for Suite {
    fn tools(&self, _client: &Client) -> Vec<OfferedTool> {
        let plain = [
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
            "test_tool_with_logging",
            "test_tool_with_progress",
            "test_error_handling",
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
            "test_input_required_result_elicitation",
            "test_input_required_result_multi_round",
            "test_input_required_result_request_state",
            "test_input_required_result_tampered_state",
        ];
        let mut tools: Vec<OfferedTool> =
            plain.iter().map(|name| offered(name, json!({ "type": "object", "properties": {} }))).collect();
        tools.push(offered(
            "test_elicitation",
            json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] }),
        ));
        tools.push(offered(
            "json_schema_2020_12_tool",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": { "address": { "type": "object", "properties": {
                    "street": { "type": "string" }, "city": { "type": "string" } } } },
                "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
                "additionalProperties": false
            }),
        ));
        tools
    }

    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, context: CallContext) -> Calling<'a> {
        Box::pin(async move {
            if name.starts_with("test_input_required_result_") {
                return call_later(name, &context);
            }
            let called = match name {
                "test_simple_text" => Called::text("This is a simple text response for testing."),
                "test_image_content" => of(vec![image()]),
                "test_audio_content" => {
                    of(vec![Content::Audio { mime_type: "audio/wav".to_owned(), data: SILENCE.to_owned() }])
                }
                "test_embedded_resource" => of(vec![document(
                    "test://embedded-resource",
                    "text/plain",
                    "This is an embedded resource content.",
                )]),
                "test_multiple_content_types" => of(vec![
                    Content::Text("Multiple content types test:".to_owned()),
                    image(),
                    document("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
                ]),
                "test_tool_with_logging" => {
                    context.log(LogLevel::Info, "Tool execution started");
                    pause().await;
                    context.log(LogLevel::Info, "Tool processing data");
                    pause().await;
                    context.log(LogLevel::Info, "Tool execution completed");
                    Called::text("Logged three lines.")
                }
                "test_tool_with_progress" => {
                    for done in [0.0, 50.0, 100.0] {
                        context.progress(done, Some(100.0), None);
                        pause().await;
                    }
                    Called::text("Told progress three times.")
                }
                "test_error_handling" => Called::failed("This tool intentionally returns an error for testing"),
                "test_elicitation" => {
                    let message = arguments.get("message").and_then(Value::as_str).unwrap_or_default();
                    let properties = json!({
                        "username": { "type": "string", "description": "User's response" },
                        "email": { "type": "string", "description": "User's email address" }
                    });
                    ask(&context, "User response", message, properties, json!(["username", "email"])).await
                }
                "test_elicitation_sep1034_defaults" => {
                    let properties = json!({
                        "name": { "type": "string", "default": "John Doe" },
                        "age": { "type": "integer", "default": 30 },
                        "score": { "type": "number", "default": 95.5 },
                        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                        "verified": { "type": "boolean", "default": true }
                    });
                    ask(&context, "Elicitation completed", "Please check the defaults", properties, json!([])).await
                }
                "test_elicitation_sep1330_enums" => {
                    let titled = |names: [&str; 3]| {
                        let values = ["value1", "value2", "value3"];
                        let options =
                            values.iter().zip(names).map(|(value, title)| json!({ "const": value, "title": title }));
                        Value::Array(options.collect())
                    };
                    let first = titled(["First Option", "Second Option", "Third Option"]);
                    let choice = titled(["First Choice", "Second Choice", "Third Choice"]);
                    let options = json!(["option1", "option2", "option3"]);
                    let properties = json!({
                        "untitledSingle": { "type": "string", "enum": options },
                        "titledSingle": { "type": "string", "oneOf": first },
                        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                            "enumNames": ["Option One", "Option Two", "Option Three"] },
                        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                        "titledMulti": { "type": "array", "items": { "anyOf": choice } }
                    });
                    ask(&context, "Elicitation completed", "Please choose", properties, json!([])).await
                }
                _ => Called::text("Accepted."),
            };
            Ok(called.into())
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "3001".to_owned());
    let identity = Identity { name: "hotcell-conformance".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let shutdown = CancellationToken::new();
    if argument == "stdio" {
        return Ok(serve_stdio(Arc::new(Suite), identity, shutdown).await?);
    }
    let port: u16 = argument.parse()?;
    let settings = HttpSettings { address: ([127, 0, 0, 1], port).into(), ..HttpSettings::default() };
    let server = serve_http(Arc::new(Suite), identity, settings, &shutdown).await?;
    println!("http://{}/mcp", server.address());
    tokio::signal::ctrl_c().await?;
    shutdown.cancel();
    server.ended().await?;
    Ok(())
}
