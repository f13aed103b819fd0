//! Agent Spec configurations are read, checked and written. `agent_spec/` has the cases that are data.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotcell_dialects::agent_spec::{self, Part};
use hotcell_dialects::{Dialect, MutualTls, ServerWay, recognise};
use hotcell_graph::diagnostic::{Severity, SourceFile, render};
use hotcell_graph::ir::{Action, Callable, Expression};
use serde_json::{Value as Json, json};

use crate::configurations::{
    World, parts_beside, parts_of_case, read_case, shared_cases, source, written_and_read_again,
};
use crate::shown::snapshots_in;

#[test]
fn shared_cases_load_or_are_refused_with_what_they_name() {
    let mut wrong = Vec::new();
    for (folder, case) in shared_cases() {
        let entry = case["entry"].as_str().unwrap();
        let text = std::fs::read_to_string(folder.join(entry)).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if recognise(entry, &text) != Some(Dialect::AgentSpec) {
            wrong.push(format!("{name}: not recognised"));
            continue;
        }
        let (configuration, diagnostics) = read_case(&folder, &case);
        let shown = render(&diagnostics, false);
        let is_refused = case["expect"]["status"].as_str() == Some("rejected");
        if is_refused != configuration.is_none() {
            wrong.push(format!("{name}: {}\n{shown}", if is_refused { "not refused" } else { "refused" }));
            continue;
        }
        let errors: String = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| format!("{diagnostic}\n").to_lowercase())
            .collect();
        for fragment in case["expect"]["error_contains"].as_array().into_iter().flatten().filter(|_| is_refused) {
            if !errors.contains(fragment.as_str().unwrap()) {
                wrong.push(format!("{name}: {fragment} is not in\n{errors}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// A flow of one node, as JSON, and what stands around it.
fn flow_around(id: &str, node: &Json) -> Json {
    let named = |end: &str| format!("{id}_{end}");
    let edge = |from: &str, to: &str| {
        json!({
            "component_type": "ControlFlowEdge", "name": "edge", "from_node": {"$component_ref": from},
            "to_node": {"$component_ref": to},
        })
    };
    let (start, end, name) = (named("start"), named("end"), node["id"].as_str().unwrap());
    json!({
        "component_type": "Flow", "id": id, "name": id, "start_node": {"$component_ref": start},
        "nodes": [{"$component_ref": start}, {"$component_ref": name}, {"$component_ref": end}],
        "control_flow_connections": [edge(&start, name), edge(name, &end)],
        "$referenced_components": {
            &start: {"component_type": "StartNode", "id": start, "name": start}, name: node,
            &end: {"component_type": "EndNode", "id": end, "name": end},
        },
    })
}

fn text_of(document: &Json) -> Arc<SourceFile> {
    Arc::new(SourceFile { name: "flow.json".to_owned(), text: document.to_string() })
}

#[test]
fn what_cannot_be_run_is_read_and_refused_with_the_node_of_the_entry_flow() {
    let model = json!({
        "component_type": "OciGenAiConfig", "id": "oci", "name": "oci", "model_id": "m", "compartment_id": "c",
        "client_config": {
            "component_type": "OciClientConfigWithInstancePrincipal", "name": "c", "service_endpoint": "https://x.invalid",
            "auth_type": "INSTANCE_PRINCIPAL",
        },
    });
    let ask = json!({
        "component_type": "LlmNode", "id": "ask", "name": "ask", "prompt_template": "Hi", "llm_config": model,
    });
    let inner =
        json!({"component_type": "FlowNode", "id": "run", "name": "run", "subflow": flow_around("inner", &ask)});
    let file = text_of(&flow_around("outer", &inner));
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    assert!(agent_spec::read(&file, &[], &world).0.is_some());
    let loaded = agent_spec::load(&file, &[], &world);
    assert!(loaded.graph.is_none());
    let [error] = &loaded.diagnostics[..] else { panic!("{}", render(&loaded.diagnostics, false)) };
    assert_eq!(error.node.as_deref(), Some("oci"));
    assert!(error.message.starts_with("`OciGenAiConfig` cannot be run"), "{error}");
    assert!(error.message.ends_with("(inside of the node `run`)"), "{error}");
}

#[test]
fn tools_that_share_a_name_are_told_apart_and_one_that_is_listed_twice_is_offered_once() {
    let tool = |id: &str, name: &str| json!({"component_type": "ClientTool", "id": id, "name": name});
    let agent = json!({
        "component_type": "Agent", "id": "a", "name": "a", "system_prompt": "Help.",
        "llm_config": {"component_type": "OpenAiConfig", "id": "m", "name": "m", "model_id": "m"},
        "tools": [
            {"$component_ref": "t1"}, {"$component_ref": "t2"}, {"$component_ref": "t1"}, tool("t3", "find it"),
            tool("t4", "find-it"), tool("t5", "find?it"), tool("t6", "submit_result"),
        ],
        "outputs": [{"title": "x", "type": "string"}],
        "$referenced_components": {"t1": tool("t1", "same"), "t2": tool("t2", "same")},
    });
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let loaded = agent_spec::load(&text_of(&agent), &[], &world);
    let graph = loaded.graph.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)));
    let offered = graph.nodes().find_map(|(_, node)| match &node.action {
        Action::Converse(action) => Some(action.tools.clone()),
        _ => None,
    });
    let names: Vec<String> = offered
        .into_iter()
        .flatten()
        .map(|offered| match offered {
            Callable::Defined(tool) => tool.spoken.clone(),
            Callable::Submit(submit) => submit.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["same", "same_2", "find_it", "find-it", "find_it_2", "submit_result", "submit_result_2"]);
}

#[test]
fn what_toolboxes_list_twice_is_offered_once_and_all_of_it_has_a_limit() {
    let toolbox = |id: &str, filter: Json| {
        json!({
            "component_type": "MCPToolBox", "id": id, "name": id, "tool_filter": filter,
            "client_transport": {
                "component_type": "StreamableHTTPTransport", "id": format!("way to {id}"), "name": format!("crowd_{id}"),
                "url": "https://mcp.example/x",
            },
        })
    };
    // The functions that the model is offered, or what is wrong.
    let offered = |toolboxes: &[&str], filter: Json| {
        let references: Vec<Json> = toolboxes.iter().map(|id| json!({ "$component_ref": id })).collect();
        let components = toolboxes.iter().map(|id| ((*id).to_owned(), toolbox(id, filter.clone())));
        let agent = json!({
            "component_type": "Agent", "id": "agent", "name": "agent", "system_prompt": "Help.",
            "llm_config": {"component_type": "OpenAiConfig", "id": "m", "name": "m", "model_id": "m"},
            "toolboxes": references, "outputs": [{"title": "x", "type": "string"}],
            "$referenced_components": components.collect::<serde_json::Map<_, _>>(),
        });
        let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
        let loaded = agent_spec::load(&text_of(&agent), &[], &world);
        let Some(graph) = loaded.graph else { return Err(render(&loaded.diagnostics, false)) };
        let tools = graph.nodes().find_map(|(_, node)| match &node.action {
            Action::Converse(action) => Some(action.tools.clone()),
            _ => None,
        });
        let functions = tools.into_iter().flatten().filter_map(|offered| match offered {
            Callable::Tool(name) => Some(name),
            _ => None,
        });
        Ok(functions.collect::<Vec<_>>())
    };
    assert_eq!(offered(&["a"; 2_000], json!(["f1", "f2", "f1"])).unwrap(), ["mcp:crowd_a/f1", "mcp:crowd_a/f2"]);
    assert_eq!(offered(&["a", "b", "a"], Json::Null).unwrap().len(), 2_000);
    let error = offered(&["a"], json!(["f1", {"name": "f1", "requires_confirmation": true}])).unwrap_err();
    assert!(error.contains("`tool_filter` names `f1` twice, and not in the same way"), "{error}");
    assert_eq!(offered(&["a", "b", "c", "d"], Json::Null).unwrap().len(), 4_000);
    let error = offered(&["a", "b", "c", "d", "e"], Json::Null).unwrap_err();
    assert!(error.contains("offer 4096 functions at most"), "{error}");
}

#[test]
fn what_an_llm_node_gives_does_not_change_by_being_written() {
    let ask = |output: Json| {
        json!({
            "component_type": "LlmNode", "id": "ask", "name": "ask", "prompt_template": "Hi", "outputs": [output],
            "llm_config": {"component_type": "OpenAiConfig", "id": "m", "name": "m", "model_id": "m"},
        })
    };
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let (text, nullable) = (json!({"title": "t", "type": "string"}), json!({"title": "t", "type": ["string", "null"]}));
    for (output, version, written_as) in [
        (&text, "25.4.1", "25.4.1"),
        (&text, "26.1.0", "25.4.1"),
        // The first version takes the reply as it is, later ones look for a value in it.
        (&nullable, "25.4.1", "25.4.1"),
        (&nullable, "26.1.0", "25.4.2"),
    ] {
        let mut document = flow_around("f", &ask(output.clone()));
        document["agentspec_version"] = version.into();
        let (configuration, diagnostics) = agent_spec::read(&text_of(&document), &[], &world);
        let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
        let written: Json = serde_json::from_str(&agent_spec::write(&configuration)).unwrap();
        assert_eq!(written["agentspec_version"], written_as, "{output} of {version}");
    }
}

#[test]
fn what_is_written_of_wayflow_has_what_its_reader_needs() {
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let written = |document: &Json| -> Json {
        let (configuration, diagnostics) = agent_spec::read(&text_of(document), &[], &world);
        let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
        serde_json::from_str(&written_and_read_again(&configuration, &[], &world)).unwrap()
    };
    // Fields that have to be there, if with `null`.
    let ask = json!({
        "component_type": "PluginInputMessageNode", "component_plugin_name": "NodesPlugin",
        "component_plugin_version": "26.3.1", "id": "ask", "name": "ask",
    });
    let flow = written(&flow_around("f", &ask)).to_string();
    assert!(flow.contains(r#""message_template":null"#), "{flow}");
    // A version that has the transforms of a template.
    let mut agent = json!({
        "component_type": "ExtendedAgent", "component_plugin_name": "AgentPlugin", "component_plugin_version": "26.3.1",
        "id": "a", "name": "a", "system_prompt": "Help.",
        "llm_config": {"component_type": "OpenAiConfig", "id": "m", "name": "m", "model_id": "m"},
    });
    assert_eq!(written(&agent)["agentspec_version"], "25.4.1");
    agent["agent_template"] = json!({
        "component_type": "PluginPromptTemplate", "id": "t", "name": "", "messages": [],
        "post_rendering_transforms": [{
            "component_type": "PluginRemoveEmptyNonUserMessageTransform", "id": "r", "name": "",
        }],
    });
    assert_eq!(written(&agent)["agentspec_version"], "26.1.2");
}

/// `agent_spec/refused` has what is read, the snapshots beside it what a person sees. Files called `warning_*` are good all
/// the same.
#[test]
fn every_kind_of_bad_input_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_spec/refused");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| (name.ends_with(".json") && !name.ends_with(".parts.json")) || name.ends_with(".yaml"))
        .collect();
    names.sort();
    assert!(names.len() > 20, "the inputs are not there");
    let world = World {
        tools: Some(["add".to_owned()].into()),
        plugins: ["hotcell_test_plugin".to_owned()].into(),
        servers: RefCell::default(),
    };
    snapshots_in(&folder).bind(|| {
        for name in names {
            let (stem, _) = name.rsplit_once('.').unwrap();
            let file = source(&folder, &name);
            assert_eq!(recognise(&name, &file.text), Some(Dialect::AgentSpec), "{name}");
            let rename = vec![("lost".to_owned(), "found".to_owned())];
            let parts: Vec<Part> = parts_beside(&folder, stem)
                .into_iter()
                .map(|file| Part { file, rename: if stem == "parts" { rename.clone() } else { Vec::new() } })
                .collect();
            let (configuration, diagnostics) = agent_spec::read(&file, &parts, &world);
            assert_eq!(configuration.is_some(), stem.starts_with("warning_"), "{name}");
            insta::assert_snapshot!(stem, render(&diagnostics, false));
        }
    });
}

/// `agent_spec/not_run` has what is good and cannot be run here, the snapshots beside it what a person sees.
#[test]
fn what_is_not_supported_is_refused_by_its_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_spec/not_run");
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    snapshots_in(&folder).bind(|| {
        for stem in ["agent", "swarm", "wayflow"] {
            let file = source(&folder, &format!("{stem}.yaml"));
            let (configuration, diagnostics) = agent_spec::read(&file, &[], &world);
            let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
            written_and_read_again(&configuration, &[], &world);
            let loaded = agent_spec::load(&file, &[], &world);
            assert!(loaded.graph.is_none(), "{stem}");
            insta::assert_snapshot!(stem, render(&loaded.diagnostics, false));
        }
    });
}

/// Each is refused soon and without taking memory for what it stands for.
#[test]
fn references_that_grow_or_nest_without_end_are_refused() {
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let agent = |rest: &str| {
        format!(
            r#"{{"component_type": "Agent", "id": "a", "name": "a", "system_prompt": "x", "metadata": {{}},
            "llm_config": {{"component_type": "OpenAiConfig", "id": "l", "name": "l", "model_id": "m"}}, {rest}}}"#
        )
    };
    let laughs: Vec<String> = (0..40)
        .map(|n| format!(r#""v{n}": [{{"$component_ref": "v{next}"}}, {{"$component_ref": "v{next}"}}]"#, next = n + 1))
        .collect();
    let laughs = format!(
        r#""description": {{"$component_ref": "v0"}}, "$referenced_components": {{{}, "v40": 1}}"#,
        laughs.join(",")
    );
    let long = format!(
        r#""description": [{}], "$referenced_components": {{"v": "{}"}}"#,
        vec![r#"{"$component_ref": "v"}"#; 100].join(","),
        "x".repeat(1 << 20)
    );
    let chain: Vec<String> = (0..3_000).map(|n| format!(r#""r{n}": {{"$component_ref": "r{}"}}"#, n + 1)).collect();
    let chain = format!(r#""tools": [{{"$component_ref": "r0"}}], "$referenced_components": {{{}}}"#, chain.join(","));
    let nodes: Vec<String> = (0..3_000)
        .map(|n| {
            format!(
                r#""n{n}": {{"component_type": "AgentNode", "id": "n{n}", "name": "n", "agent": {{"$component_ref": "n{}"}}}}"#,
                n + 1
            )
        })
        .collect();
    let nodes = format!(r#""tools": [{{"$component_ref": "n0"}}], "$referenced_components": {{{}}}"#, nodes.join(","));
    for (name, rest, problem) in [
        ("laughs", laughs, "references copy more than 100000 values"),
        ("long", long, "references copy more than 100000 values"),
        ("chain", chain, "nothing has the key `r3000`"),
        ("nodes", nodes, "components are nested more than 128 levels deep"),
    ] {
        let file = Arc::new(SourceFile { name: "agent.json".to_owned(), text: agent(&rest) });
        let (configuration, diagnostics) = agent_spec::read(&file, &[], &world);
        assert!(configuration.is_none(), "{name}");
        let found = diagnostics.iter().any(|diagnostic| diagnostic.message.starts_with(problem));
        assert!(found, "{name}: {}", render(&diagnostics[..diagnostics.len().min(3)], false));
    }
}

/// The form in which two documents that mean the same are equal: references replaced by what they name, what means
/// nothing left out, what has no order sorted.
fn canonical(document: &Json) -> Json {
    let mut definitions = Vec::new();
    collect(document, &mut definitions);
    in_canonical_form(document, &definitions)
}

fn collect<'j>(json: &'j Json, found: &mut Vec<(&'j String, &'j Json)>) {
    match json {
        Json::Object(object) => {
            found.extend(object.get("$referenced_components").and_then(Json::as_object).into_iter().flatten());
            object.values().for_each(|value| collect(value, found));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

fn in_canonical_form(json: &Json, definitions: &[(&String, &Json)]) -> Json {
    const UNORDERED: &[&str] =
        &["inputs", "outputs", "branches", "nodes", "tools", "control_flow_connections", "data_flow_connections"];
    const AS_IT_IS: &[&str] = &["inputs", "outputs", "metadata", "default_generation_parameters", "session_parameters"];
    match json {
        Json::Object(object) => {
            if let Some(key) = object.get("$component_ref") {
                let (_, target) = definitions.iter().find(|(known, _)| *known == key.as_str().unwrap()).unwrap();
                return in_canonical_form(target, definitions);
            }
            let is_component = object.contains_key("component_type");
            let mut kept = serde_json::Map::new();
            for (key, value) in object {
                let is_next = matches!(key.as_str(), "from_branch" | "branch_name") && value == "next";
                if matches!(key.as_str(), "$referenced_components" | "agentspec_version") || (is_component && is_next) {
                    continue;
                }
                let means_nothing = value.is_null()
                    || value.as_object().is_some_and(serde_json::Map::is_empty)
                    || (value.as_array().is_some_and(Vec::is_empty) && key != "data_flow_connections");
                if is_component && means_nothing {
                    continue;
                }
                let as_it_is = is_component && AS_IT_IS.contains(&key.as_str());
                let mut value = if as_it_is { value.clone() } else { in_canonical_form(value, definitions) };
                if let (true, Json::Array(items)) = (is_component && UNORDERED.contains(&key.as_str()), &mut value) {
                    items.sort_by_key(ToString::to_string);
                }
                kept.insert(key.clone(), value);
            }
            kept.sort_keys();
            Json::Object(kept)
        }
        Json::Array(items) => items.iter().map(|item| in_canonical_form(item, definitions)).collect(),
        _ => json.clone(),
    }
}

/// Without the descriptions of inputs and outputs.
fn without_descriptions(json: &mut Json) {
    match json {
        Json::Object(object) => {
            for (key, value) in object {
                if let (true, Json::Array(properties)) = (key == "inputs" || key == "outputs", &mut *value) {
                    for property in properties.iter_mut().filter_map(Json::as_object_mut) {
                        property.remove("description");
                    }
                }
                without_descriptions(value);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

#[test]
fn what_is_written_is_equivalent_to_what_was_read() {
    let mut round_trips = 0;
    for (folder, case) in shared_cases() {
        let (Some(configuration), _) = read_case(&folder, &case) else { continue };
        let parts = parts_of_case(&folder, &case);
        let text = written_and_read_again(&configuration, &parts, &World::of_case(&case));
        if case["expect"]["status"] != "roundtrip" {
            continue;
        }
        round_trips += 1;
        let equivalent = case.get("equivalent_to").or_else(|| case["expect"].get("equivalent_to"));
        let file = source(&folder, equivalent.unwrap_or(&case["entry"]).as_str().unwrap());
        let mut expected = canonical(&serde_json::from_str(&file.text).unwrap());
        let written: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(written["agentspec_version"], "25.4.1", "{}", folder.display());
        let mut written = canonical(&written);
        if equivalent.is_some() {
            without_descriptions(&mut expected);
            without_descriptions(&mut written);
        }
        let pretty = |json| serde_json::to_string_pretty(json).unwrap();
        assert!(expected == written, "{}\n{}\n---\n{}", folder.display(), pretty(&expected), pretty(&written));
    }
    assert!(round_trips == 7 || shared_cases().is_empty(), "{round_trips} cases are there");
}

#[test]
fn every_transport_is_a_server_of_its_own() {
    let tool = |number: usize, transport: Json| {
        json!({
            "component_type": "MCPTool", "id": format!("tool {number}"), "name": "search", "client_transport": transport,
        })
    };
    let transport = |kind: &str, id: &str, name: &str, own: Json| {
        let mut transport = json!({ "component_type": kind, "id": id, "name": name });
        transport.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        transport
    };
    let remote = json!({ "url": "https://mcp.example/x", "headers": { "X-A": "b" } });
    let mut mutual = remote.clone();
    for (field, file) in [("key_file", "key.pem"), ("cert_file", "cert.pem"), ("ca_file", "ca.pem")] {
        mutual[field] = json!(file);
    }
    let program = json!({
        "command": "npx", "args": ["-y", "server"], "env": { "A": "b" }, "cwd": "/srv",
        "session_parameters": { "read_timeout_seconds": 2.5 },
    });
    let transports = [
        transport("StdioTransport", "t1", "library", program),
        // Another server with the name of the first.
        transport("SSETransport", "t2", "library", remote.clone()),
        transport("StreamableHTTPTransport", "t3", "three", remote.clone()),
        transport("SSEmTLSTransport", "t4", "four", mutual.clone()),
        transport("StreamableHTTPmTLSTransport", "t5", "five", mutual),
    ];
    let llm = json!({ "component_type": "OpenAiConfig", "id": "llm", "name": "llm", "model_id": "m" });
    let agent = json!({
        "component_type": "Agent", "id": "a", "name": "a", "llm_config": llm, "system_prompt": "Help.",
        "tools": transports.into_iter().enumerate().map(|(number, transport)| tool(number, transport)).collect::<Vec<_>>(),
    });
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let file = Arc::new(SourceFile { name: "agent.json".to_owned(), text: agent.to_string() });
    let loaded = agent_spec::load(&file, &[], &world);
    assert!(loaded.graph.is_some(), "{}", render(&loaded.diagnostics, false));

    let service = |events: bool, is_mutual: bool| ServerWay::Service {
        url: "https://mcp.example/x".to_owned(),
        headers: vec![("X-A".to_owned(), "b".to_owned())],
        events,
        tls: is_mutual.then(|| MutualTls {
            key_file: "key.pem".to_owned(),
            certificate_file: "cert.pem".to_owned(),
            ca_file: "ca.pem".to_owned(),
        }),
    };
    let program = ServerWay::Program {
        command: "npx".to_owned(),
        arguments: vec!["-y".to_owned(), "server".to_owned()],
        environment: vec![("A".to_owned(), "b".to_owned())],
        folder: Some("/srv".to_owned()),
    };
    let expected = [
        ("library", program, Some(Duration::from_millis(2_500))),
        ("t2", service(true, false), None),
        ("three", service(false, false), None),
        ("four", service(true, true), None),
        ("five", service(false, true), None),
    ];
    let noted = world.servers.into_inner();
    assert_eq!(noted.len(), expected.len());
    for (noted, (name, way, timeout)) in noted.iter().zip(expected) {
        assert_eq!((noted.name.as_str(), noted.timeout), (name, timeout));
        assert!(noted.way == way, "{name}");
    }
}

/// What is told apart by its text: all of it is secret, and none of it may be written.
const SECRET: &str = "hunter2";

#[test]
fn what_was_handed_in_is_written_as_the_reference_that_it_was() {
    let reference = |key: &str| json!({ "$component_ref": key });
    let document = json!({
        "component_type": "Agent", "id": "a", "name": "a", "agentspec_version": "25.4.2",
        "llm_config": reference("model"), "system_prompt": reference("words"),
        "tools": [
            reference("server"), reference("server again"),
            {
                "component_type": "RemoteTool", "id": "remote", "name": "remote", "http_method": "GET",
                "url": reference("address"), "data": { "deep": [1, reference("address"), {}] },
                "headers": { "Authorization": reference("key"), "X-Own": reference("own") },
            },
        ],
        "$referenced_components": { "address": reference("the address"), "own": "plain" },
    });
    let parts = json!({ "$referenced_components": {
        "model": {
            "component_type": "OpenAiConfig", "id": SECRET, "name": SECRET, "model_id": reference("inner"),
        },
        "inner": SECRET, "key": SECRET, "words": format!("{SECRET} {{{{x}}}}"), "the address": format!("http://{SECRET}"),
        "server": {
            "component_type": "ServerTool", "id": "server", "name": SECRET,
            "inputs": [{ "title": SECRET, "type": "string" }],
        },
        "alias": reference("server"),
    } });
    let file = |name: &str, json: &Json| Arc::new(SourceFile { name: name.to_owned(), text: json.to_string() });
    let parts =
        [Part { file: file("parts.json", &parts), rename: vec![("alias".to_owned(), "server again".to_owned())] }];
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let (configuration, diagnostics) = agent_spec::read(&file("agent.json", &document), &parts, &world);
    let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
    let text = written_and_read_again(&configuration, &parts, &world);
    assert!(!text.contains(SECRET), "{text}");

    let written: Json = serde_json::from_str(&text).unwrap();
    let mut expected = document;
    // What the document itself refers to is written where it is used; from there on the part is referred to.
    expected.as_object_mut().unwrap().remove("$referenced_components");
    let tool = &mut expected["tools"][2];
    tool["url"] = reference("the address");
    tool["data"]["deep"][1] = reference("the address");
    tool["headers"]["X-Own"] = json!("plain");
    // One component, whichever of its keys is used.
    expected["tools"][0] = written["tools"][0].clone();
    expected["tools"][1] = written["tools"][1].clone();
    for tool in [&written["tools"][0], &written["tools"][1]] {
        assert!([reference("server"), reference("server again")].contains(tool), "{tool}");
    }
    assert_eq!(written, expected);

    // The whole of it, and a list of what is in it, may be handed in.
    let (top, list) = (
        json!({ "$component_ref": "top" }),
        json!({
            "component_type": "Agent", "id": "a", "name": "a", "system_prompt": "x", "llm_config": reference("model"),
            "tools": reference("tools"), "agentspec_version": "25.4.1",
        }),
    );
    let apart = json!({ "$referenced_components": {
        "top": list, "tools": [reference("tool")],
        "model": { "component_type": "OpenAiConfig", "id": "model", "name": "model", "model_id": SECRET },
        "tool": { "component_type": "ClientTool", "id": "tool", "name": SECRET },
    } });
    let apart = [Part { file: file("apart.json", &apart), rename: Vec::new() }];
    for (name, document) in [("top.json", &top), ("list.json", &list)] {
        let (configuration, diagnostics) = agent_spec::read(&file(name, document), &apart, &world);
        let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
        let text = written_and_read_again(&configuration, &apart, &world);
        let mut written: Json = serde_json::from_str(&text).unwrap();
        written.as_object_mut().unwrap().remove("agentspec_version");
        let mut expected = document.clone();
        expected.as_object_mut().unwrap().remove("agentspec_version");
        assert_eq!(written, expected, "{name}");
    }
}

/// A flow whose only node is one of a plugin that takes other components in its fields.
fn consulting(fields: &Json, referenced: &Json) -> Arc<SourceFile> {
    let reference = |key: &str| json!({ "$component_ref": key });
    let edge = |from: &str, to: &str| {
        let id = format!("{from}->{to}");
        json!({
            "component_type": "ControlFlowEdge", "id": id, "name": id, "from_node": reference(from), "to_node": reference(to),
        })
    };
    let mut node = json!({
        "component_type": "ConsultingNode", "component_plugin_name": "hotcell_test_plugin",
        "component_plugin_version": "1.0.0", "id": "consult", "name": "consult",
    });
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut all = json!({
        "start": {
            "component_type": "StartNode", "id": "start", "name": "start", "inputs": [{ "title": "text", "type": "string" }],
        },
        "consult": node,
        "ask": {
            "component_type": "LlmNode", "id": "ask", "name": "ask", "prompt_template": "x",
            "llm_config": reference("llm"),
        },
        "end": { "component_type": "EndNode", "id": "end", "name": "end" },
        "llm": { "component_type": "OpenAiConfig", "id": "llm", "name": "llm", "model_id": reference("model id") },
        "model id": "m",
    });
    all.as_object_mut().unwrap().extend(referenced.as_object().unwrap().clone());
    let nodes = ["start", "consult", "ask", "end"].map(reference);
    let flow = json!({
        "component_type": "Flow", "id": "f", "name": "f", "agentspec_version": "25.4.1", "start_node": reference("start"),
        "nodes": nodes,
        "control_flow_connections": [edge("start", "consult"), edge("consult", "ask"), edge("ask", "end")],
        "$referenced_components": all,
    });
    let text = serde_json::to_string_pretty(&flow).unwrap();
    Arc::new(SourceFile { name: "flow.json".to_owned(), text })
}

#[test]
fn components_in_fields_of_a_plugin_are_given_to_it_and_stay_components() {
    let world = World { tools: None, plugins: ["hotcell_test_plugin".to_owned()].into(), servers: RefCell::default() };
    let agent = json!({
        "component_type": "Agent", "id": "helper", "name": "helper", "system_prompt": "Help.",
        "llm_config": { "$component_ref": "own" }, "metadata": { "$component_ref": "nothing that is looked up" },
        "$referenced_components": { "own": { "$component_ref": "llm" } },
    });
    let fields = json!({ "model": { "$component_ref": "llm" }, "helpers": [agent, { "plain": { "$component_ref": "model id" } }] });
    let file = consulting(&fields, &json!({}));
    let loaded = agent_spec::load(&file, &[], &world);
    let graph = loaded.graph.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)));
    let node = graph.node(graph.find("consult").unwrap());
    let Action::PluginNode(plugin_node) = &node.action else { panic!("{:?}", node.action) };
    let Expression::Value(with) = &plugin_node.with else { panic!("{:?}", plugin_node.with) };
    let llm = json!({ "component_type": "OpenAiConfig", "id": "llm", "name": "llm", "model_id": "m" });
    let mut helper = agent.clone();
    helper["llm_config"] = llm.clone();
    helper.as_object_mut().unwrap().remove("$referenced_components");
    assert_eq!(Json::from(with), json!({ "model": llm, "helpers": [helper, { "plain": "m" }] }));

    // Written, the model is one component that three others use.
    let (configuration, _) = agent_spec::read(&file, &[], &world);
    let text = written_and_read_again(&configuration.unwrap(), &[], &world);
    assert_eq!(text.matches("\"OpenAiConfig\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"$component_ref\": \"llm\"").count(), 3, "{text}");

    // What of it is handed in stays apart.
    let parts = json!({ "$referenced_components": { "apart": {
        "component_type": "OpenAiConfig", "id": "apart", "name": "apart", "model_id": SECRET,
    }, "value": SECRET } });
    let parts = [Part {
        file: Arc::new(SourceFile { name: "parts.json".to_owned(), text: parts.to_string() }),
        rename: Vec::new(),
    }];
    let fields = json!({ "model": { "$component_ref": "apart" }, "helpers": [{ "x": { "$component_ref": "value" } }] });
    let (configuration, diagnostics) = agent_spec::read(&consulting(&fields, &json!({})), &parts, &world);
    let configuration = configuration.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
    let text = written_and_read_again(&configuration, &parts, &world);
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn what_is_wrong_with_components_in_fields_of_a_plugin_is_told_where_it_is() {
    let world = World { tools: None, plugins: ["hotcell_test_plugin".to_owned()].into(), servers: RefCell::default() };
    let reference = |key: &str| json!({ "$component_ref": key });
    let openai = |rest: Json| {
        let mut config = json!({ "component_type": "OpenAiConfig", "id": "x", "name": "x", "model_id": "m" });
        config.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        config
    };
    for (fields, referenced, problem, place) in [
        (json!({ "model": openai(json!({ "mode": "m" })) }), json!({}), "`mode`", "\"mode\""),
        (json!({ "model": reference("nobody") }), json!({}), "nothing has the key `nobody`", "\"nobody\""),
        // The plugin wants an OpenAiConfig.
        (json!({ "model": reference("start") }), json!({}), "StartNode", "\"$component_ref\": \"start\""),
        (json!({ "helpers": [{ "component_type": "Nothing" }] }), json!({}), "`Nothing`", "\"Nothing\""),
        (json!({ "helpers": [reference("consult")] }), json!({}), "contains itself", ""),
        (
            json!({ "helpers": [reference("circle")] }),
            json!({ "circle": { "next": reference("circle") } }),
            "the value contains itself",
            "",
        ),
    ] {
        let file = consulting(&fields, &referenced);
        let (configuration, diagnostics) = agent_spec::read(&file, &[], &world);
        assert!(configuration.is_none(), "{fields}");
        let shown = render(&diagnostics, false);
        let told = diagnostics.iter().find(|diagnostic| diagnostic.message.contains(problem));
        let told = told.unwrap_or_else(|| panic!("{problem}: {shown}"));
        let span = told.span.as_ref().unwrap();
        assert!(file.text[span.start..span.end].contains(place), "{problem}: {shown}");
        assert_eq!(diagnostics.len(), 1, "{shown}");
    }
}
