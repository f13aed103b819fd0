//! What a person sees for each kind of bad input: `refused/*.yaml` are the inputs, the snapshots beside them the
//! complete output. Files called `warning_*` give a graph all the same.

use std::path::Path;
use std::sync::Arc;

use hotcell_dialects::{agentloom, leafmesh, loki};
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, render};

use crate::shown::{files_in, snapshots_in};
use crate::surroundings::Fake;

#[test]
fn every_kind_of_bad_input_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let paths = files_in(&folder);
    assert!(paths.len() > 60, "the inputs are not there");
    snapshots_in(&folder).bind(|| {
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let file = Arc::new(SourceFile { name: format!("{name}.yaml"), text });
            let loaded =
                if name.starts_with("config_") { loki::load_config(&file, &Fake) } else { loki::load(&file, &Fake) };
            let errors = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
            assert!(!loaded.diagnostics.is_empty(), "{name} is not complained about");
            assert_eq!(errors == 0, name.starts_with("warning_"), "{name} has {errors} errors");
            assert_eq!(loaded.graph.is_some(), errors == 0, "{name}");
            insta::assert_snapshot!(name, render(&loaded.diagnostics, false));
        }
    });
}

#[test]
fn an_answer_that_a_map_collects_is_used() {
    let text = "name: poems\nversion: \"1.0\"\nstart: each\ninitial_state: { words: [rain] }\nnodes:\n  \
                each: { type: map, over: \"{{words}}\", as: word, branch: write, collect_into: poems, next: done }\n  \
                write: { type: llm, prompt: \"About {{word}}\" }\n  done: { type: end, output: \"{{poems}}\" }\n";
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text: text.into() }), &Fake);
    assert_eq!(render(&loaded.diagnostics, false), "");
    assert!(loaded.graph.is_some());
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = format!("name: {}", "x".repeat(hotcell_dialects::document::MAX_BYTES));
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
    let [only] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics.len()) };
    assert_eq!(only.message, "the file has 16777222 bytes, and at most 16777216 are read");
}

/// Each is refused with its place, soon, and without taking memory for what it stands for.
#[test]
fn attack_70_yaml_that_grows_or_nests_without_end_is_refused_with_its_place() {
    let mut laughs = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let entry = format!("*l{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("l{level}: &l{level} [{}]\n", entry.trim_end_matches(", ")));
    }
    let deep = format!("name: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let steps: String = (0..100_000).map(|level| format!("{}a:\n", " ".repeat(level % 2_000))).collect();
    let cases = [
        ("bomb", laughs),
        ("deep", deep),
        ("stairs", steps),
        ("twins", "name: a\nstart: b\nname: c\nnodes: { b: { type: end, output: x } }\n".to_owned()),
        ("circle", "name: &a [*a]\n".to_owned()),
        ("unknown", "name: *nobody\n".to_owned()),
        ("merge", "a: &a { <<: *a }\nname: x\n".to_owned()),
    ];
    for (name, text) in cases {
        let started = std::time::Instant::now();
        let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
        assert!(loaded.graph.is_none(), "{name} was taken");
        assert!(loaded.diagnostics.iter().any(|one| one.span.is_some()), "{name}: {:?}", loaded.diagnostics.first());
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{name}: {:?}", started.elapsed());
    }
    // One long text is only a long text.
    let text = format!("name: {}\nstart: b\nnodes: {{ b: {{ type: end, output: x }} }}\n", "x".repeat(10 << 20));
    loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
}

/// What reads a graph compares its parts with each other: there are only so many.
#[test]
fn attack_70_a_file_holds_so_many_values_and_no_more() {
    let refused = |name: &str, text: String| {
        let loaded = loki::load(&Arc::new(SourceFile { name: name.into(), text }), &Fake);
        let [only] = &loaded.diagnostics[..] else { panic!("{name}: {:?}", loaded.diagnostics.len()) };
        assert!(only.span.is_some(), "{only}");
        only.message.clone()
    };
    let all = |separator: &str, number: usize, one: &dyn Fn(usize) -> String| {
        (0..number).map(one).collect::<Vec<_>>().join(separator)
    };
    let entries = |number: usize| format!("{{{}}}", all(", ", number, &|at| format!("\"k{at}\": 1")));
    let lists = |number: usize| format!("{{\"a\": [{}]}}", all(", ", number, &|_| "[]".to_owned()));
    let values = |number: usize| format!("{{\"a\": [{}]}}", all(", ", number, &|_| "1".to_owned()));
    for name in ["graph.yaml", "graph.json"] {
        assert_eq!(refused(name, entries(4_001)), "the mapping has 4001 entries, and at most 4000 are read");
        assert_eq!(refused(name, lists(4_001)), "the list has 4001 mappings and lists, and at most 4000 are read");
        assert_eq!(refused(name, values(200_001)), "the file has more than 200000 values");
        // Those that may be there are read, whatever is wrong with them.
        let file = Arc::new(SourceFile { name: name.into(), text: values(199_000) });
        let (document, diagnostics) = hotcell_dialects::document::parse(&file);
        assert!(document.is_some() && diagnostics.is_empty(), "{diagnostics:?}");
    }
    // What a mapping takes in from others counts as its own.
    let sources = all("\n", 2, &|at| format!("s{at}: &s{at} {}", entries(2_001).replace("\"k", &format!("\"k{at}-"))));
    let merged = format!("{sources}\na: {{ <<: [*s0, *s1] }}\n");
    assert_eq!(refused("graph.yaml", merged), "the mapping has 4002 entries, and at most 4000 are read");
    // A long text that aliases stand for counts by its length, as what it is used for does not share it.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), all(", ", 100, &|_| "*a".to_owned()));
    assert_eq!(refused("graph.yaml", long), "the aliases of this YAML file stand for more than 100000 values");
}

fn load(text: String) -> loki::Loaded {
    loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake)
}

fn says(loaded: &loki::Loaded, part: &str) -> bool {
    loaded.diagnostics.iter().any(|diagnostic| diagnostic.message.contains(part))
}

/// A few hundred warnings about nothing leave room for what is an error, and for what whoever looks has to see.
#[test]
fn no_number_of_warnings_hides_what_matters() {
    let noise = "{{a b}} ".repeat(300);
    let graph = |prompt: &str| {
        format!(
            "name: g\nversion: '1.0'\nstart: draft\nnodes:\n  draft: {{ type: script, script: draft.sh, next: ask }}\n  \
             ask: {{ type: approval, question: 'Send?', options: [yes, no], routes: {{ yes: send, no: done }}, on_other: done }}\n  \
             send: {{ type: llm, prompt: '{noise}', next: last }}\n  last: {{ type: llm, prompt: '{prompt}', next: done }}\n  \
             done: {{ type: end, output: x }}\n"
        )
    };
    let loaded = load(graph("x"));
    assert!(says(&loaded, "can send the run past the approval `ask`"), "{}", loaded.diagnostics.len());
    assert!(loaded.graph.is_some());
    let loaded = load(graph("{{__nobody__}}"));
    assert!(says(&loaded, "nothing fills the placeholder") && loaded.graph.is_none(), "{}", loaded.diagnostics.len());
}

/// A hundred and sixty thousand edges stand in less than a megabyte.
#[test]
fn a_graph_of_edges_from_everywhere_to_everywhere_is_refused() {
    let targets = (0..400).map(|to| format!("n{to}")).collect::<Vec<_>>().join(",");
    let nodes: String =
        (0..400).map(|at| format!("  n{at}: {{ type: llm, prompt: x, next: [{targets}] }}\n")).collect();
    let loaded =
        load(format!("name: g\nversion: '1.0'\nstart: n0\nnodes:\n{nodes}  done: {{ type: end, output: x }}\n"));
    assert!(says(&loaded, "too many ways lead through it") && loaded.graph.is_none());
}

/// A thousand maps that lead to each other, and a thousand that all run the same thousand nodes: a million nodes.
#[test]
fn the_branches_of_all_maps_have_a_size_together() {
    let maps = |branch: &dyn Fn(usize) -> String| -> String {
        let map = |at| {
            let branch = branch(at);
            format!(
                "  m{at}: {{ type: map, over: '{{{{x}}}}', as: i, collect_into: c{at}, branch: {branch}, next: done }}\n"
            )
        };
        (0..1_000).map(map).collect()
    };
    let graph = |nodes: &str| {
        load(format!("name: g\nversion: '1.0'\nstart: m0\nnodes:\n{nodes}  done: {{ type: end, output: x }}\n"))
    };
    let in_a_row = graph(&maps(&|at| format!("m{}", at + 1)));
    assert!(says(&in_a_row, "is the `map` node") && in_a_row.graph.is_none());

    let chain: String =
        (0..1_000).map(|at| format!("  s{at}: {{ type: llm, prompt: '{{{{i}}}}', next: s{} }}\n", at + 1)).collect();
    let chain = format!("{chain}  s1000: {{ type: llm, prompt: x }}\n");
    let shared = graph(&format!("{}{chain}", maps(&|_| "s0".to_owned())));
    assert!(says(&shared, "have too many nodes and edges together") && shared.graph.is_none());
    // A few nodes with long texts count as much.
    let long = format!(
        "  s0: {{ type: llm, prompt: '{}', next: s1 }}\n  s1: {{ type: llm, prompt: x }}\n",
        "x".repeat(1 << 20)
    );
    let shared = graph(&format!("{}{long}", maps(&|_| "s0".to_owned())));
    assert!(says(&shared, "have too many nodes and edges together"));
}

/// Names are compared to offer one of them in place of a wrong one. Of wrong ones a file may have any number.
#[test]
fn no_number_of_wrong_names_is_compared_with_all_others() {
    let name = |start: &str, at: usize| format!("{}{at:04}", start.repeat(90));
    let list = |start: &str, number: usize| (0..number).map(|at| name(start, at)).collect::<Vec<_>>();
    let file = |name: &str, text: String| Arc::new(SourceFile { name: name.into(), text });

    let calls = list("b", 400).join("}, {agent: ");
    let agent = |at| {
        let id = name("a", at);
        format!("  {id}: {{agent_type: programmatic, communication_type: chain, can_call: [{{agent: {calls}}}]}}\n")
    };
    let agents: String = (0..150).map(agent).collect();
    let mesh = format!("name: x\nmanager: {{enabled: false}}\nagents:\n{agents}entry_points: []\n");
    let found = leafmesh::load(&file("mesh.yaml", mesh), &Fake).diagnostics;
    assert!(found.iter().any(|one| one.message.contains("which does not exist")), "{:?}", found.first());

    let waited = list("b", 100).join(", ");
    let step = |at| {
        let id = name("a", at);
        format!("- {{id: {id}, type: llm_call, depends_on: [{waited}], prompt: hi, output: o{at}}}\n")
    };
    let workflow = format!("name: w\nstate: {{}}\nsteps:\n{}", (0..1_200).map(step).collect::<String>());
    let found = agentloom::load(&file("loom.yaml", workflow), &Fake).diagnostics;
    assert!(found.iter().any(|one| one.message.contains("which does not exist")), "{:?}", found.first());

    let references: String = list("c", 100_000).iter().map(|name| format!("{{{{{name}}}}}")).collect();
    let keys = list("d", 2_000).join(": x, ");
    let text = format!(
        "name: g\nversion: '1.0'\nstart: a\nnodes:\n  a: {{ type: llm, prompt: '{references}', state_updates: {{{keys}: x}}, \
         next: done }}\n  done: {{ type: end, output: x }}\n"
    );
    assert!(says(&load(text), "nothing in the graph writes"));
}

#[test]
fn a_name_in_braces_that_is_like_one_of_the_state_is_told() {
    let text = "name: w\nstate: {who: you}\nsteps:\n\
                - {id: a, type: llm_call, prompt: 'Hi {stat.who} {wo} {who} {other}', output: state.a}\n";
    let file = Arc::new(SourceFile { name: "loom.yaml".into(), text: text.into() });
    let found = agentloom::load(&file, &Fake).diagnostics;
    let of_names = found.iter().filter(|one| one.message.starts_with("`{"));
    let told: Vec<(&str, Option<&str>)> = of_names.map(|one| (&*one.message, one.help.as_deref())).collect();
    let expected = [
        ("`{stat.who}` stays as it is, because nothing is called `stat`", Some("did you mean `state`?")),
        ("`{wo}` stays as it is, because nothing is called `wo`", Some("did you mean `who`?")),
    ];
    assert_eq!(told, expected);
}

/// Every two steps of these are looked at, which may be told of two hundred times.
#[test]
fn steps_of_a_workflow_are_compared_within_bounds() {
    let load = |steps: String| {
        let text = format!("name: w\nstate: {{}}\nsteps:\n{steps}");
        agentloom::load(&Arc::new(SourceFile { name: "loom.yaml".into(), text }), &Fake).diagnostics
    };
    let step = |at: usize, before: &str, output: &str| {
        format!("- {{id: a{at}, type: llm_call, depends_on: [{before}], prompt: hi, output: {output}}}\n")
    };
    let says = |found: &[Diagnostic], part: &str| found.iter().any(|one| one.message.contains(part));
    let found = load((0..3_900).map(|at| step(at, "", "o")).collect());
    assert!(says(&found, "may run side by side"), "{:?}", found.first());
    // Each waits for all before it.
    let found = load((0..3_900).map(|at| step(at, &format!("a{}", at - at.min(1)), "o")).collect());
    assert!(says(&found, "wait for each other: a0 -> a0") && !says(&found, "may run side by side"));
    let routers: String = (0..60)
        .map(|at| format!("- {{id: r{at}, type: router, conditions: [{{expression: 'True', target: a0}}]}}\n"))
        .collect();
    let before = (0..60).map(|at| format!("r{at}")).collect::<Vec<_>>().join(", ");
    let found = load(routers + &(0..1_500).map(|at| step(at, &before, "o")).collect::<String>());
    assert!(says(&found, "is too large to be checked"), "{:?}", found.first());
}

/// Each of these is looked through once: a text of seven megabytes, half of it braces.
#[test]
fn what_stands_in_braces_is_looked_through_once() {
    for text in ["{{state.x}}".repeat(700_000), "{{".repeat(3_000_000), "{{x ".repeat(1_500_000)] {
        let text = format!(
            "name: g\nversion: '1.0'\nstart: a\nnodes:\n  a: {{ type: llm, prompt: '{text}', next: done }}\n  \
             done: {{ type: end, output: x }}\n"
        );
        assert!(!load(text).diagnostics.is_empty());
    }
}

#[test]
fn endless_mistakes_are_cut_off() {
    let text = format!("name: g\nstart: a\nnodes:\n{}", "  a: 1\n".repeat(5000));
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
    assert!(loaded.diagnostics.len() <= 2 * hotcell_dialects::document::MAX_DIAGNOSTICS);
}

#[test]
fn two_files_in_one_folder() {
    insta::assert_snapshot!(loki::both_files("desk").to_string(), @"error: the folder `desk` holds both `config.yaml` and `graph.yaml` (remove one of them: `config.yaml` is for a tool loop, `graph.yaml` for a graph)");
}
