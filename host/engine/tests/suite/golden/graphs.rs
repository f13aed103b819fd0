//! The graphs of the runs in the golden files. Whoever changes one makes the runs of it unreadable.

use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{Action, AskAction, CallAction, Expression, Graph, PromptPart, Variable};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Reducer, Template};

use crate::common::{each, end, graph, model_loop, node, pass, script};

fn ask(question: &str, options: &[&str], default: Option<&str>) -> Action {
    let text = |text: &str| Expression::Strict(Template::parse(text));
    Action::Ask(AskAction {
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        default: default.map(text),
        trim: true,
        ..AskAction::new(text(question), "choice")
    })
}

fn model(prompt: &str, tool: &str) -> Action {
    let text = |speaker, text: &str| PromptPart::text("`prompt`", speaker, Expression::Strict(Template::parse(text)));
    let prompt = vec![text(Speaker::System, "Antworte kurz — auf Deutsch."), text(Speaker::Human, prompt)];
    Action::Call(Box::new(model_loop(prompt, tool, (8, 3))))
}

/// Nested branches, a map, a question and a loop.
pub(crate) fn journey() -> Arc<Graph> {
    let ids = ["first", "left", "right", "deep", "deeper", "join", "each", "one", "ask", "turn", "done"];
    let mut built = graph(&ids, |ids| {
        vec![
            script(ids, "first", "first", &[("trail", "first")], &["left", "right"]),
            script(ids, "left", "left-is-slow", &[("trail", "left")], &["join"]),
            pass(ids, "right", &[("trail", "right")], &["deep", "deeper"]),
            script(ids, "deep", "deep", &[("trail", "deep")], &["join"]),
            script(ids, "deeper", "deeper", &[("trail", "deeper")], &["join"]),
            pass(ids, "join", &[("trail", "join")], &["each"]),
            node(ids, "each", each(ids, "one", "output", "collected", Some(2)), &[], &["ask"]),
            script(ids, "one", "one", &[], &[]),
            node(ids, "ask", ask("weiter nach {{collected}}?", &["ja"], None), &[("said", "{{choice}}")], &["turn"]),
            script(ids, "turn", "turn", &[("trail", "turn {{n}}")], &["done"]),
            end(ids, "done", "{{trail}} {{collected}} {{said}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), parse_json("[1,2,3,4]").expect("JSON")), ("n".into(), 0.into())];
    built.reducers.insert("trail".into(), Reducer::Append);
    Arc::new(built)
}

/// Fails at its second program, if that fails.
pub(crate) fn brittle() -> Arc<Graph> {
    Arc::new(graph(&["first", "break", "done"], |ids| {
        vec![
            script(ids, "first", "first", &[("trail", "first")], &["break"]),
            script(ids, "break", "break", &[("trail", "{{trail}}, break")], &["done"]),
            end(ids, "done", "{{trail}}"),
        ]
    }))
}

/// A node that asks and a model whose tool asks, side by side with a program.
pub(crate) fn doubts() -> Arc<Graph> {
    let mut built = graph(&["split", "ask", "talk", "work", "join", "done"], |ids| {
        let color = ask("Welche Farbe? 🎨", &["grün", "blau"], Some("grün"));
        let talk = model("Soll «{{input}}» gelöscht werden?", "confirm");
        vec![
            pass(ids, "split", &[], &["ask", "talk", "work"]),
            node(ids, "ask", color, &[("color", "{{choice}}")], &["join"]),
            node(ids, "talk", talk, &[("said", "{{output}}")], &["join"]),
            script(ids, "work", "work", &[("worked", "yes")], &["join"]),
            pass(ids, "join", &[], &["done"]),
            end(ids, "done", "{{color}}|{{said}}|{{worked}}"),
        ]
    });
    built.input_key = Some("input".into());
    Arc::new(built)
}

/// A model with a tool, and a map whose items call an agent, side by side.
pub(crate) fn survey() -> Arc<Graph> {
    let mut built = graph(&["split", "talk", "each", "one", "join", "done"], |ids| {
        let prompt = Expression::Strict(Template::parse("{{x}}"));
        let call = Action::Call(Box::new(CallAction::agent("reporter".into(), prompt, "output")));
        let talk = model("Wie ist das Wetter in {{city}} und anderswo?", "weather");
        vec![
            pass(ids, "split", &[], &["talk", "each"]),
            node(ids, "talk", talk, &[("said", "{{output}}")], &["join"]),
            node(ids, "each", each(ids, "one", "output", "reports", Some(2)), &[], &["join"]),
            node(ids, "one", call, &[], &[]),
            pass(ids, "join", &[], &["done"]),
            end(ids, "done", "{{said}} {{reports}}"),
        ]
    });
    let items = parse_json(r#"["Århus","Besançon","Česká Lípa","Łódź"]"#).expect("JSON");
    built.initial_state = vec![("xs".into(), items)];
    built.variables = vec![Variable { name: "city".into(), description: "where".into(), default: None }];
    Arc::new(built)
}

/// The agent `reporter`.
pub(crate) fn reporter() -> Arc<Graph> {
    let mut built = graph(&["fetch", "write", "done"], |ids| {
        vec![
            script(ids, "fetch", "fetch", &[], &["write"]),
            script(ids, "write", "write", &[], &["done"]),
            end(ids, "done", "{{text}}"),
        ]
    });
    built.input_key = Some("prompt".into());
    Arc::new(built)
}

/// Nothing but a model with a tool.
pub(crate) fn patience() -> Arc<Graph> {
    Arc::new(graph(&["talk", "done"], |ids| {
        vec![
            node(ids, "talk", model("Wie ist das Wetter?", "weather"), &[("said", "{{output}}")], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    }))
}

/// A turn of a conversation.
pub(crate) fn thread() -> Arc<Graph> {
    let mut built = graph(&["count", "done"], |ids| {
        vec![
            script(ids, "count", "count", &[("said", "{{input}}")], &["done"]),
            end(ids, "done", "{{turns}}: {{said}}"),
        ]
    });
    built.input_key = Some("input".into());
    built.initial_state = vec![("turns".into(), 0.into())];
    built.reducers.insert("said".into(), Reducer::Append);
    built.reducers.insert("turns".into(), Reducer::Sum);
    Arc::new(built)
}
