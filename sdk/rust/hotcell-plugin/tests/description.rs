//! What the description says, from the JSON down to each type.

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Event, Json, Outcome, Reply, Request, Value, Verdict};
use hotcell_plugin::{connector, hook, json, node, plugin, script, tool};

plugin! {
    name: "test:all",
    description: "Says \"hello\".\n\u{1}",
    tools: [every_type, nothing, tools::inner, part, anything],
    script: run,
    nodes: [lookup],
    hooks: [watch],
    connector: send,
    capabilities: {
        http: ["https://a.example", "http://localhost:8080", "*"],
        secret: { KEY: "for \"it\"" },
        env: ["LANG"],
        fs: { "/data": read, "/out": write },
        tool: ["search"],
        kv: true,
        llm: true,
        ask: true,
        clock: precise,
        random: fresh,
    },
}

/// A color.
#[derive(Value)]
#[serde(rename_all = "kebab-case")]
enum Color {
    /// Like blood.
    DarkRed,
    #[serde(rename = "azure")]
    Blue,
}

/// A shape.
#[derive(Value)]
#[value(tag = "kind", rename_all = "lowercase")]
enum Shape {
    /// Round.
    Circle {
        /// From the middle.
        radius: f64,
    },
    Nothing,
}

/// A part.
#[derive(Value)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Part {
    /// How many.
    unit_count: u8,
    #[serde(rename = "tag")]
    label: Option<String>,
    #[serde(default)]
    colors: Vec<Color>,
    #[serde(default = "seven")]
    weight: i64,
    #[serde(skip)]
    #[expect(dead_code, reason = "it shows that nothing outside sees it")]
    secret: u32,
}

fn seven() -> i64 {
    7
}

#[derive(Value)]
struct Name(String);

/// Takes every type.
///
/// - one
/// - two
#[tool(read_only)]
#[expect(clippy::too_many_arguments, reason = "one for each type")]
fn every_type(
    /// A text with "quotes".
    text: &str,
    number: f64,
    small: i8,
    large: u64,
    /** A switch. */
    switch: bool,
    list: &[Part],
    map: BTreeMap<String, Vec<bool>>,
    any: Json,
    /// The color to use.
    color: Option<Color>,
    shape: Option<Shape>,
    name: Name,
    #[value(default = -3)] defaulted: i32,
    #[value(rename = "type", default = "azure")] kind: Color,
) -> Result<(), Error> {
    let _ = (text, number, small, large, switch, list, map, any, color, shape, name.0, defaulted, kind);
    Ok(())
}

/// Does nothing.
#[tool(name = "no-thing")]
fn nothing() -> Result<(), std::num::ParseIntError> {
    Ok(())
}

/// Gives a part.
#[tool]
fn part() -> Result<Part, Error> {
    Err(Error::other("none is left"))
}

/// Gives anything.
#[tool]
fn anything() -> Result<Json, Error> {
    Ok(json!(1))
}

mod tools {
    use hotcell_plugin::{Error, tool};

    /// Lies in a module, with names that the generated code has as well.
    #[tool]
    pub(crate) fn inner(reader: String, read: String, inner: String, given: String) -> Result<String, Error> {
        Ok(reader + &read + &inner + &given)
    }
}

#[script]
fn run() -> Result<Json, Error> {
    Ok(json!({}))
}

/// Looks up.
#[node(branches = ["found", "missing"])]
fn lookup(inputs: BTreeMap<String, String>) -> Result<Outcome<Part>, Error> {
    Err(Error::invalid_input(format!("{inputs:?}")))
}

/// Watches.
#[hook("before-node", "after-node")]
fn watch(_event: &Event) -> Result<Verdict, Error> {
    Ok(Verdict::Proceed)
}

/// Sends.
#[connector(modes = ["sync"])]
fn send(request: Request<Json, Part>) -> Result<Reply<Json>, Error> {
    Ok(Reply::Done(request.input))
}

fn described() -> Result<Json, String> {
    PLUGIN.description().parse().map_err(|error| format!("{error}"))
}

#[test]
fn the_plugin_itself_is_described() -> Result<(), String> {
    let description = described()?;
    assert_eq!(description["contract"], "0.2.0");
    assert_eq!(description["name"], "test:all");
    assert_eq!(description["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(description["description"], "Says \"hello\".\n\u{1}");
    assert_eq!(
        description["capabilities"],
        json!({
            "http": ["https://a.example", "http://localhost:8080", "*"],
            "secret": [{ "name": "KEY", "why": "for \"it\"" }],
            "env": ["LANG"],
            "fs": [{ "guest": "/data", "access": "read" }, { "guest": "/out", "access": "read-write" }],
            "tool": ["search"], "kv": true, "llm": true, "ask": true, "clock": "precise", "random": "fresh",
        })
    );
    Ok(())
}

#[test]
fn every_type_has_its_schema() -> Result<(), String> {
    let description = described()?;
    let tool = &description["tools"][0];
    assert_eq!((&tool["name"], &tool["read_only"]), (&json!("every_type"), &json!(true)));
    assert_eq!(tool["description"], "Takes every type.\n\n- one\n- two");
    let part = json!({
        "description": "A part.", "type": "object",
        "properties": {
            "unitCount": { "description": "How many.", "type": "integer", "minimum": 0, "maximum": 255 },
            "tag": { "type": ["string", "null"] },
            "colors": { "type": "array", "items": {
                "description": "A color.\n- `dark-red`: Like blood.", "type": "string", "enum": ["dark-red", "azure"] } },
            "weight": { "type": "integer" },
        },
        "required": ["unitCount"], "additionalProperties": false,
    });
    let color = "A color.\n- `dark-red`: Like blood.";
    let any = json!({ "type": ["object", "array", "string", "number", "boolean", "null"] });
    assert_eq!(
        tool["parameters"],
        json!({
            "type": "object",
            "properties": {
                "text": { "description": "A text with \"quotes\".", "type": "string" },
                "number": { "type": "number" },
                "small": { "type": "integer", "minimum": -128, "maximum": 127 },
                "large": { "type": "integer", "minimum": 0 },
                "switch": { "description": "A switch.", "type": "boolean" },
                "list": { "type": "array", "items": part },
                "map": { "type": "object", "additionalProperties": { "type": "array", "items": { "type": "boolean" } } },
                "any": any,
                "color": { "description": format!("The color to use.\n{color}"),
                           "type": ["string", "null"], "enum": ["dark-red", "azure", null] },
                "shape": { "anyOf": [
                    { "description": "A shape.", "oneOf": [
                        { "description": "Round.", "type": "object",
                          "properties": { "kind": { "const": "circle" },
                                          "radius": { "description": "From the middle.", "type": "number" } },
                          "required": ["kind", "radius"], "additionalProperties": false },
                        { "type": "object", "properties": { "kind": { "const": "nothing" } },
                          "required": ["kind"], "additionalProperties": false },
                    ] },
                    { "type": "null" } ] },
                "name": { "type": "string" },
                "defaulted": { "type": "integer", "minimum": -2_147_483_648, "maximum": 2_147_483_647, "default": -3 },
                "type": { "description": color, "type": "string", "enum": ["dark-red", "azure"], "default": "azure" },
            },
            "required": ["text", "number", "small", "large", "switch", "list", "map", "any", "name"],
            "additionalProperties": false,
        })
    );
    Ok(())
}

#[test]
fn the_other_kinds_are_described() -> Result<(), String> {
    let description = described()?;
    assert_eq!(description["tools"][1]["name"], "no-thing");
    assert_eq!(
        description["tools"][1]["parameters"],
        json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false })
    );
    let node = &description["nodes"][0];
    assert_eq!((&node["type"], &node["description"]), (&json!("lookup"), &json!("Looks up.")));
    assert_eq!(node["branches"], json!(["found", "missing"]));
    assert_eq!(node["inputs"], json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    assert_eq!(node["fields"]["additionalProperties"], true);
    assert_eq!(node["outputs"]["properties"]["weight"], json!({ "type": "integer" }));
    let hooks = json!([
        { "description": "Watches.", "point": "before-node" }, { "description": "Watches.", "point": "after-node" }]);
    assert_eq!(description["hooks"], hooks);
    assert_eq!(description["connector"]["modes"], json!(["sync"]));
    assert_eq!(description["connector"]["config"]["required"], json!(["unitCount"]));
    Ok(())
}

#[test]
fn a_tool_says_what_it_returns_where_its_type_does() -> Result<(), String> {
    let description = described()?;
    let returns: Vec<&Json> = (0..5).map(|index| &description["tools"][index]["returns"]).collect();
    assert_eq!(returns[2], &json!({ "type": "string" }));
    assert_eq!(returns[3], &description["connector"]["config"]);
    for (index, why) in [(0, "it returns nothing"), (1, "it returns nothing"), (4, "it may return anything")] {
        assert_eq!(returns[index], &Json::Null, "{why}");
    }
    Ok(())
}

/// What the component carries is made at compile time by the same code; here both are compared.
#[test]
fn compile_time_and_run_time_say_the_same() {
    const LENGTH: usize = hotcell_plugin::macros::length(&PLUGIN);
    static RENDERED: [u8; LENGTH] = hotcell_plugin::macros::render::<LENGTH>(&PLUGIN);
    assert_eq!(String::from_utf8_lossy(&RENDERED), PLUGIN.description());
}

#[test]
fn names_of_the_generated_code_are_no_trouble() {
    let answer = PLUGIN.call_tool("inner", json!({ "reader": "a", "read": "b", "inner": "c", "given": "d" }));
    assert_eq!(answer, Ok(json!("abcd")));
}
