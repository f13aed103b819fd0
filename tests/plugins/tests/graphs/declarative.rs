//! Declarative agents and what is around them: MCP servers of their own, custom nodes, functions in Python, schemas.

use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::{Nobody, Outcome, RunInput};
use serde_json::{Value, json};

use crate::desk::{Desk, Says, calls, error, output, state, told};

/// An agent with one model that may call everything there is, and with these declarations.
pub(crate) fn talker(declarations: &str) -> String {
    format!(
        "manifest_version: 1\nllms: [{{id: main, model_name: small}}]\ndefault_llm: {{id: main}}\n{declarations}\nagents:\n  \
         desk:\n    state: {{fields: [{{name: messages, type: list}}]}}\n    graph:\n      entry_point: work\n      nodes:\n        \
         - name: work\n          type: call_llm\n          args:\n            prompt: [{{role: messages, content: messages}}]\n            \
         use_tools_from_registry: true\n      edges: []\n"
    )
}

fn served(mode: &str, more: &str) -> Desk {
    let stranger = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/mcp/tests/servers/stranger.py");
    let server = format!("{{id: library, transport: stdio, command: python3, args: ['{stranger}', {mode}]{more}}}");
    Desk::of("agent.yaml", &talker(&format!("mcp_servers: [{server}]")))
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_declared_server_are_tools_once_it_is_granted() {
    let desk = served("normal", ", tool_prefix: lib_");
    let refused = desk.refusal();
    assert!(refused.contains("[grants.\"mcp:library\"]") && refused.contains("process = true"), "{refused}");
    assert!(refused.contains("agent.yaml:4:"), "the place of the server: {refused}");
    desk.settings("[grants.\"mcp:library\"]\nprocess = true");
    let (report, model) = desk.run(calls("lib_echo", json!({ "a": 1 }))).await;
    assert_eq!(output(&report), "done");
    assert!(told(&model).contains('1'), "{}", told(&model));
    let offered: Vec<String> = model.requests()[0].tool_names().iter().map(|name| (*name).to_owned()).collect();
    assert!(offered.contains(&"lib_echo".to_owned()) && offered.contains(&"lib_sleep".to_owned()), "{offered:?}");

    let (report, _) = desk.run_with(calls("lib_ask", json!({})), Arc::new(Says("blue"))).await;
    assert_eq!(output(&report), "done");
}

/// An agent of one custom node.
fn custom(metadata: &str) -> String {
    format!(
        "manifest_version: 1\nagents:\n  desk:\n    state:\n      fields:\n        - {{name: fields, type: dict}}\n        - \
         {{name: inputs, type: dict}}\n        - {{name: answer, type: str}}\n        - {{name: more, type: int, default: 7}}\n        \
         - {{name: ask, type: str, default: 'Sure?'}}\n    graph:\n      entry_point: work\n      nodes: [{{name: work, type: custom, args: \
         {{{metadata}}}}}]\n      edges: []\n"
    )
}

fn with_node(desk: &Desk, branches: &[&str]) {
    desk.plugin_like("probe", "probe", &[], json!({ "ask": true }), "ask = true", |description| {
        description["nodes"][0]["branches"] = json!(branches);
        description["nodes"][0]["fields"]["additionalProperties"] = json!(false);
    });
}

#[tokio::test]
async fn a_custom_node_is_a_node_type_of_a_plugin() {
    for metadata in ["metadata: {node: probe/work, units: km}", "metadata: {units: km}"] {
        let desk = Desk::of("agent.yaml", &custom(metadata));
        with_node(&desk, &[]);
        let (report, _) = desk.run(json!([])).await;
        let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!((questions[0].node.as_str(), questions[0].text.as_str()), ("work", "Sure?"));

        let (report, _) = desk.run_with(json!([]), Arc::new(Says("yes"))).await;
        assert!(matches!(report.outcome, Outcome::Completed { .. }), "{:?}", report.outcome);
        let state = state(&report);
        assert_eq!(state["fields"], json!({ "units": "km" }), "{metadata}");
        assert_eq!(state["inputs"]["more"], json!(7));
        assert_eq!(state["answer"], json!("yes"));
    }
}

#[test]
fn a_custom_node_that_stands_for_nothing_is_refused_with_what_would_help() {
    for (metadata, branches, expected) in [
        ("", &["left"][..], "leaves by branches (`left`)"),
        ("metadata: {node: probe/wrok}", &[], "did you mean `probe/work`?"),
        ("metadata: {node: probe/probe}", &[], "`probe/probe` is not a node type"),
        ("metadata: {node: probe/work, unit: km}", &[], "do not fit `probe/work`"),
    ] {
        let desk = Desk::of("agent.yaml", &custom(metadata));
        with_node(&desk, branches);
        let refused = desk.refusal();
        assert!(refused.contains(expected), "{metadata}: {refused}");
    }
    let alone = Desk::of("agent.yaml", &custom("")).refusal();
    assert!(alone.contains("metadata: {node: plugin/type}"), "{alone}");
}

const TOOLS: &str = r#"
from typing import Annotated, Literal

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.types import interrupt

TABLE = {"Oslo": 3, "Rome": 21}


@tool
def get_weather(city: str, unit: Literal["C", "F"] = "C", days: Annotated[int, "how many"] = 1) -> dict:
    """Looks up the weather.

    Knows two cities.
    """
    print("this is no answer")
    degrees = TABLE[city]
    return {"city": city, "degrees": degrees if unit == "C" else degrees * 9 / 5 + 32, "days": days}


@tool
def request_user_input(question: str) -> str:
    """Ask the user for more information."""
    response = interrupt(AIMessage(content=question))
    return str(response)


async def add(numbers: list[int]) -> int:
    return _sum(numbers)


def _sum(numbers):
    return sum(numbers)


def spread(*numbers: int) -> int:
    return 0
"#;

fn python(import: &str, file: &str) -> Desk {
    let desk = Desk::of("agent.yaml", &talker(&format!("tools: [{{id: one, import_path: {import}}}]")));
    desk.write(file, TOOLS);
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_python_file_beside_the_agent_are_tools_as_they_are() {
    let desk = python("my_package.tools.get_weather", "my_package/tools.py");
    let (report, model) = desk.run(calls("get_weather", json!({ "city": "Rome", "unit": "F" }))).await;
    assert_eq!(output(&report), "done");
    let answer: Value = serde_json::from_str(&told(&model)).unwrap();
    assert_eq!(answer, json!({ "city": "Rome", "degrees": 69.8, "days": 1 }));
    let offered = &model.requests()[0].tools[0];
    assert_eq!(offered.description, "Looks up the weather.\n\nKnows two cities.");
    assert_eq!(
        offered.parameters,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "unit": { "enum": ["C", "F"], "default": "C" },
                "days": { "type": "integer", "description": "how many", "default": 1 },
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    );

    // A wrong argument is for the model, an error inside is for the node.
    let (report, model) = desk.run(calls("get_weather", json!({ "town": "Rome" }))).await;
    assert_eq!(output(&report), "done");
    assert!(told(&model).contains("city"), "{}", told(&model));
    let (report, _) = desk.run(calls("get_weather", json!({ "city": "Bonn" }))).await;
    assert!(error(&report).contains("KeyError: 'Bonn'"), "{}", error(&report));

    let (_, model) = python("tools.add", "tools.py").run(calls("add", json!({ "numbers": [1, 2, 3] }))).await;
    assert_eq!(told(&model), "6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_a_python_file_that_interrupts_asks_the_person() {
    let desk = python("tools.request_user_input", "tools.py");
    let asked = || calls("request_user_input", json!({ "question": "Which town?" }));
    let (report, _) = desk.run(asked()).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].text, "Which town?");
    let (report, model) = desk.run_with(asked(), Arc::new(Says("Oslo"))).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "Oslo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_import_path_means_can_be_said() {
    let desk = python("acme.weather.lookup", "lib/tools.py");
    let refused = desk.refusal();
    for place in ["the tool `lookup` of the plugins in `plugins`", "`acme/weather.py`", "`weather.py`", "[imports]"] {
        assert!(refused.contains(place), "{place}: {refused}");
    }
    desk.settings("[imports]\n'acme.weather.lookup' = 'lib/tools.py:get_weather'");
    let (_, model) = desk.run(calls("get_weather", json!({ "city": "Oslo" }))).await;
    assert!(told(&model).contains('3'), "{}", told(&model));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_file_has_what_was_granted_to_that_very_file() {
    let reads = "import os\ndef look() -> str:\n    return str(os.environ.get('HOTCELL_SECRET_KEY'))\n";
    let clerk = talker("tools: [{id: look, import_path: tools.look}]").replace("desk:", "clerk:");
    let declared = "tools: [{id: look, import_path: tools.look}]\nsub_agents: [{id: clerk, yaml_path: sub/clerk.yaml}]";
    let desk = Desk::of("agent.yaml", &talker(declared));
    for file in ["tools.py", "sub/tools.py"] {
        desk.write(file, reads);
    }
    desk.write("sub/clerk.yaml", &clerk);
    desk.settings("[grants.'tools.py']\nenv = ['HOTCELL_SECRET_KEY']");
    let (_, model) = desk.run(calls("look", json!({}))).await;
    assert_eq!(told(&model), "value-of-the-key");
    let text = talker(declared).replace("use_tools_from_registry: true", "use_sub_agents_as_tools: true");
    desk.write("agent.yaml", &text);
    let ask = json!([{ "tool_calls": [{ "name": "clerk", "arguments": { "request": "look" } }] }]);
    let replies: Vec<Value> = [ask, calls("look", json!({})), json!([{ "content": "end" }])]
        .iter()
        .flat_map(|replies| replies.as_array().cloned().unwrap_or_default())
        .collect();
    let (_, model) = desk.run(Value::from(replies)).await;
    let seen =
        model.requests().iter().flat_map(|request| request.messages.clone()).any(|message| message.content == "None");
    assert!(seen, "the file of the same name in another folder was granted nothing");
}

/// Each of nine levels names two of the next: without a limit more than a thousand agents would be loaded, and twenty levels
/// would never be done with.
#[test]
fn sub_agents_that_multiply_are_not_all_loaded() {
    let named = |level: usize| {
        let next = level + 1;
        format!("sub_agents: [{{id: a, yaml_path: l{next}a.yaml}}, {{id: b, yaml_path: l{next}b.yaml}}]")
    };
    let desk = Desk::of("agent.yaml", &talker(&named(0)).replace("use_tools_from_registry", "use_sub_agents_as_tools"));
    for level in 1..12 {
        for name in ["a", "b"] {
            let text = talker(&named(level)).replace("desk:", &format!("{name}:"));
            let text = text.replace("use_tools_from_registry", "use_sub_agents_as_tools");
            desk.write(&format!("l{level}{name}.yaml"), &text);
        }
    }
    let refused = desk.refusal();
    assert!(refused.contains("with its sub-agents this agent has more than 256"), "{refused}");
}

#[test]
fn what_is_wrong_with_a_python_file_is_said() {
    for (import, file, expected) in [
        ("tools.get_wether", TOOLS, "defines no function `get_wether`; there is `get_weather`"),
        ("tools._sum", TOOLS, "defines no function `_sum`"),
        ("tools.spread", TOOLS, "the parameter `numbers` has no name by which it can be given"),
        ("tools.get", "def get(", "SyntaxError"),
        ("tools.get", "import numpy\n", "No module named 'numpy'"),
        ("tools.get", "while True: pass\n", "out-of-fuel"),
    ] {
        let desk = Desk::of("agent.yaml", &talker(&format!("tools: [{{id: one, import_path: {import}}}]")));
        desk.write("tools.py", file);
        let refused = desk.refusal();
        assert!(refused.contains(expected), "{import}: {refused}");
    }
}

#[tokio::test]
async fn structured_input_has_the_form_that_is_declared() {
    let object = "{type: object, properties: {n: {type: integer, minimum: 1}}, required: [n]}";
    let agent = format!(
        "manifest_version: 1\nagents:\n  desk:\n    input_schema: {object}\n    output_schema: {object}\n    state: {{fields: [{{name: \
         messages, type: list}}, {{name: n, type: int, default: 0}}]}}\n    graph:\n      entry_point: say\n      nodes:\n        - {{name: \
         say, type: set_state, args: {{values: {{messages: '{{\"type\": \"ai\", \"content\": \"{{\\\"n\\\": \" + string(n) + \"}}\"}}'}}}}}}\n      \
         edges: []\n"
    );
    let desk = Desk::of("agent.yaml", &agent);
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let host = desk.host(&model);
    let number = |n: i64| RunInput { state: [("n".into(), n.into())].into_iter().collect(), ..RunInput::default() };
    let report = desk.start(&host, number(3), Arc::new(Nobody)).await.unwrap();
    assert_eq!(output(&report), r#"{"n": 3}"#);
    let refused = desk.start(&host, number(0), Arc::new(Nobody)).await.unwrap_err().to_string();
    assert!(
        refused.contains("the input does not fit the `input_schema`: /n: 0 is less than the minimum of 1"),
        "{refused}"
    );
    let text = |text: &str| RunInput { input: Some(text.to_owned()), ..RunInput::default() };
    let refused = desk.start(&host, text(r#"{"m": 1}"#), Arc::new(Nobody)).await.unwrap_err().to_string();
    assert!(refused.contains("\"n\" is a required property"), "{refused}");
    // A message is none of these, and what a run gives is a text: `output_schema` is for structured parts of answers.
    let report = desk.start(&host, text("hello"), Arc::new(Nobody)).await.unwrap();
    assert_eq!(output(&report), r#"{"n": 0}"#);
}
