//! `hotcell plugin` and `hotcell trust`, as an operator uses them.

use wasm_encoder::{ComponentSection as _, CustomSection};

use crate::desk::{Desk, text};

/// A component with this description. It says that it has tools; nothing here calls them.
fn component(description: &str) -> Vec<u8> {
    component_of("call-tool", description)
}

/// A component with this export and description. Nothing here calls it.
fn component_of(export: &str, description: &str) -> Vec<u8> {
    let text = format!(r#"(component (instance $i) (export "hotcell:plugin/{export}@0.2.0" (instance $i)))"#);
    let mut bytes = wat::parse_str(&text).unwrap();
    CustomSection { name: "hotcell:description".into(), data: description.as_bytes().into() }
        .append_to_component(&mut bytes);
    bytes
}

fn weather(capabilities: &str) -> Vec<u8> {
    component(&format!(
        r#"{{"contract":"0.2.0","name":"acme:weather","version":"1.0.0","description":"Forecasts.","tools":[
            {{"name":"forecast","description":"The weather of a city","parameters":{{"type":"object"}}}}],
            "capabilities":{capabilities}}}"#
    ))
}

fn desk() -> Desk {
    Desk::with("name: x\nstart: done\nnodes:\n  done: { type: end, output: done }\n", &[])
}

fn put(desk: &Desk, file: &str, bytes: &[u8]) {
    let path = desk.path(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_plugin_is_added_looked_at_granted_and_removed() {
    let desk = desk();
    put(&desk, "download/w.wasm", &weather(r#"{"http":["https://api.example.org"],"kv":true}"#));
    insta::assert_snapshot!(desk.told(&["plugin", "add", "download/w.wasm"]));
    insta::assert_snapshot!(desk.told(&["plugin", "list"]));
    assert_eq!(desk.output(&["plugin", "grant", "acme:weather"]).status.code(), Some(2), "nobody confirms it");
    insta::assert_snapshot!(desk.told(&["plugin", "grant", "acme:weather", "--only", "http", "--yes"]));
    insta::assert_snapshot!(std::fs::read_to_string(desk.path("hotcell.toml")).unwrap());
    assert!(text(&desk.output(&["plugin", "list"])).contains("ready"));
    insta::assert_snapshot!(desk.told(&["plugin", "inspect", "acme:weather"]));
    let revoked = text(&desk.output(&["plugin", "revoke", "acme:weather"]));
    assert!(revoked.contains("has no grants any more"), "{revoked}");
    assert!(text(&desk.output(&["plugin", "list"])).contains("waiting"));
    assert_eq!(desk.output(&["plugin", "remove", "acme:weather"]).status.code(), Some(0));
    assert!(text(&desk.output(&["plugin", "list"])).contains("there are no plugins here"));
}

/// A plugin comes with its cases: playing them hands it nothing of the machine that the person did not agree to.
#[test]
fn cases_get_no_directory_outside_their_folder_unless_the_person_agrees() {
    let desk = desk();
    put(&desk, "p/w.wasm", &weather("{}"));
    desk.write("keys/id", "private");
    let case = r#"{"tool":"forecast","expect":{"output":1},"grants":{"fs":[{"host":"HOST","guest":"/d"}]}}"#;
    let keys = desk.path("keys").display().to_string();
    for host in ["../../keys", &keys, "link"] {
        desk.write("p/cases/a.json", &case.replace("HOST", host));
        #[cfg(unix)]
        if host == "link" {
            std::os::unix::fs::symlink(&keys, desk.path("p/cases/link")).unwrap();
        }
        for command in ["test", "bench"] {
            let output = desk.output(&["plugin", command, "p", "--component", "p/w.wasm"]);
            let told = text(&output);
            assert_eq!(output.status.code(), Some(2), "{told}");
            assert!(told.contains("read the files of") && told.contains("keys`, as `/d`"), "{told}");
            assert!(told.contains("confirmation needs a terminal"), "{told}");
        }
        let agreed = text(&desk.output(&["plugin", "test", "p", "--component", "p/w.wasm", "--yes"]));
        assert!(!agreed.contains("confirmation needs"), "{agreed}");
    }
    desk.write("p/cases/data/x", "");
    desk.write("p/cases/a.json", &case.replace("HOST", "data"));
    let own = text(&desk.output(&["plugin", "test", "p", "--component", "p/w.wasm"]));
    assert!(!own.contains("confirm"), "{own}");
    let http = r#"{"tool":"forecast","expect":{"output":1},"grants":{"http":["http://169.254.169.254"]}}"#;
    desk.write("p/cases/a.json", http);
    let record = ["plugin", "test", "p", "--component", "p/w.wasm", "--record"];
    let told = text(&desk.output(&record));
    assert!(told.contains("http://169.254.169.254") && told.contains("confirmation needs a terminal"), "{told}");
}

#[test]
fn an_update_that_asks_for_more_needs_consent_again() {
    let desk = desk();
    put(&desk, "one.wasm", &weather(r#"{"kv":true}"#));
    put(&desk, "two.wasm", &weather(r#"{"kv":true,"llm":true}"#));
    desk.output(&["plugin", "add", "one.wasm"]);
    desk.output(&["plugin", "grant", "acme:weather", "--yes"]);
    let refused = desk.output(&["plugin", "add", "two.wasm"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("--replace"), "{}", text(&refused));
    insta::assert_snapshot!(desk.told(&["plugin", "add", "two.wasm", "--replace"]));
    let verified = desk.output(&["plugin", "verify"]);
    assert_eq!(verified.status.code(), Some(2));
    insta::assert_snapshot!(desk.told(&["plugin", "grant", "acme:weather", "--yes"]));
    assert!(text(&desk.output(&["plugin", "list"])).contains("ready"));
    let settings = || std::fs::read_to_string(desk.path("hotcell.toml")).unwrap();
    assert!(!settings().contains("llm"), "an update gets no more than what it was granted: {}", settings());
    insta::assert_snapshot!(desk.told(&["plugin", "grant", "acme:weather", "--add", "llm", "--yes"]));
    assert!(settings().contains("kv = true") && settings().contains("llm = true"), "{}", settings());
}

#[test]
fn a_granted_directory_is_written_as_it_was_given() {
    let desk = desk();
    put(&desk, "agent/plugins/w.wasm", &weather(r#"{"fs":[{"guest":"/data","access":"read"}]}"#));
    desk.write("notes/a", "");
    desk.write("agent/own/a", "");
    let grant = |directory: &str| {
        let given = format!("/data={directory}");
        let granted = desk.output(&["plugin", "grant", "acme:weather", "--in", "agent", "--fs", &given, "--yes"]);
        (granted.status.code(), text(&granted))
    };
    let absolute = desk.path("notes").display().to_string();
    for (given, written) in
        [("notes", "../notes"), ("agent/own", "own"), ("agent", "."), (absolute.as_str(), absolute.as_str())]
    {
        let (code, told) = grant(given);
        assert_eq!(code, Some(0), "{told}");
        let settings = std::fs::read_to_string(desk.path("agent/hotcell.toml")).unwrap();
        assert!(settings.contains(&format!("host = \"{written}\"")), "{given}: {settings}");
    }
    let (code, told) = grant("nothing");
    assert!(code == Some(2) && told.contains("there is no directory `nothing`"), "{told}");
}

#[test]
fn a_hook_plugin_waits_for_a_grant() {
    let desk = desk();
    let hooks = r#"{"contract":"0.2.0","name":"spy","version":"1.0.0","hooks":[{"point":"before-model-call"}]}"#;
    put(&desk, "download/spy.wasm", &component_of("hook", hooks));
    insta::assert_snapshot!(desk.told(&["plugin", "add", "download/spy.wasm"]));
    insta::assert_snapshot!(desk.told(&["run", "."]));
    insta::assert_snapshot!(desk.told(&["plugin", "grant", "spy", "--yes"]));
    assert_eq!(desk.output(&["check", "."]).status.code(), Some(0));
}

#[test]
fn a_broken_plugin_is_listed_with_its_reason() {
    let desk = desk();
    put(&desk, "plugins/text.wasm", b"this is no component");
    put(&desk, "plugins/weather.wasm", &weather("{}"));
    insta::assert_snapshot!(desk.told(&["plugin", "list"]));
    let inspected = desk.output(&["plugin", "inspect", "text"]);
    assert!(text(&inspected).contains("is broken: it is a text file"), "{}", text(&inspected));
    let missing = desk.output(&["plugin", "inspect", "acme:wether"]);
    assert!(text(&missing).contains("did you mean `acme:weather`?"), "{}", text(&missing));
    for line in String::from_utf8(desk.output(&["plugin", "list", "--json"]).stdout).unwrap().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).unwrap()["standing"].is_string(), "{line}");
    }
}

#[test]
fn a_tool_of_a_plugin_that_waits_is_refused_with_the_command_that_decides() {
    let graph = r#"name: ask
start: say
global_tools: [forecast]
nodes:
  say: { type: llm, prompt: hi, tools: [forecast], next: done }
  done: { type: end, output: "{{output}}" }
"#;
    let desk = Desk::with(graph, &[]);
    put(&desk, "plugins/weather.wasm", &weather(r#"{"llm":true}"#));
    insta::assert_snapshot!(desk.told(&["check", "."]));
}

#[test]
fn only_signed_plugins_count_where_the_user_says_so() {
    let desk = desk();
    put(&desk, "plugins/weather.wasm", &weather("{}"));
    assert_eq!(desk.output(&["plugin", "keygen", "key"]).status.code(), Some(0));
    let public = std::fs::read_to_string(desk.path("key.pub")).unwrap();
    let public = public.lines().last().unwrap();
    let verify = ["plugin", "verify", "--key", public];
    assert!(text(&desk.output(&verify)).contains("it has no signature"));
    // What is no key is said first, whatever the signatures are.
    let mistaken = desk.output(&["plugin", "verify", "--key", public, "--key", "abc"]);
    assert_eq!(mistaken.status.code(), Some(2));
    let said = String::from_utf8_lossy(&mistaken.stderr).into_owned();
    assert!(said.contains("`abc` is not a minisign public key") && !said.contains("no signature"), "{said}");
    assert_eq!(desk.output(&["plugin", "sign", "plugins/weather.wasm", "--key", "key"]).status.code(), Some(0));
    let verified = text(&desk.output(&verify));
    assert!(!verified.contains("signature"), "{verified}");
    put(&desk, "plugins/weather.wasm", &weather(r#"{"ask":true}"#));
    assert!(text(&desk.output(&verify)).contains("or the file was changed after it was signed"));
}

fn weather_of(version: &str, capabilities: &str) -> Vec<u8> {
    let mut bytes = weather(capabilities);
    let at = bytes.windows(5).position(|part| part == b"1.0.0").unwrap();
    bytes[at..at + 5].copy_from_slice(version.as_bytes());
    bytes
}

/// An older version is signed as well as a newer one.
#[test]
fn an_older_version_is_used_only_where_the_person_allows_it() {
    let plugin = "plugins/weather.wasm";
    let grant = ["plugin", "grant", "acme:weather", "--yes"];
    let allowed = ["plugin", "grant", "acme:weather", "--yes", "--allow-older"];
    // With a grant, which is pinned.
    let desk = desk();
    put(&desk, plugin, &weather_of("2.0.0", r#"{"ask":true}"#));
    assert_eq!(desk.output(&grant).status.code(), Some(0));
    put(&desk, plugin, &weather_of("1.9.9", r#"{"ask":true}"#));
    insta::assert_snapshot!(desk.told(&grant));
    assert!(!text(&desk.output(&["plugin", "list"])).contains("ready"));
    assert_eq!(desk.output(&allowed).status.code(), Some(0));
    assert!(text(&desk.output(&["plugin", "list"])).contains("ready"));

    // With a signature alone.
    let desk = self::desk();
    assert_eq!(desk.output(&["plugin", "keygen", "key"]).status.code(), Some(0));
    let public = std::fs::read_to_string(desk.path("key.pub")).unwrap();
    let config = format!("[signatures]\nrequired = true\nkeys = ['{}']\n", public.lines().last().unwrap());
    desk.write(".config/hotcell/config.toml", &config);
    let signed = |version| {
        put(&desk, plugin, &weather_of(version, "{}"));
        assert_eq!(desk.output(&["plugin", "sign", plugin, "--key", "key"]).status.code(), Some(0));
        assert_eq!(desk.output(&["check", "."]).status.code(), Some(0));
        text(&desk.output(&["plugin", "inspect", "acme:weather"]))
    };
    assert!(signed("2.0.0").contains("ready"));
    assert!(signed("2.1.0").contains("ready"));
    let told = signed("2.0.5");
    assert!(told.contains("it is version 2.0.5, and version 2.1.0 was used before"), "{told}");
    assert!(told.contains("`hotcell plugin grant acme:weather --allow-older` allows that"), "{told}");
    assert_eq!(desk.output(&allowed).status.code(), Some(0));
    assert!(text(&desk.output(&["plugin", "inspect", "acme:weather"])).contains("ready"));
}

/// What is granted counts for what was shown, and whatever differs is said, by the command and where it matters.
#[test]
fn what_changes_after_a_yes_is_told_and_needs_another() {
    let graph = "name: x\nversion: \"1.0\"\nstart: a\nnodes:\n  a: { type: script, script: scripts/a.sh, next: done }\n  \
                 done: { type: end, output: \"{{said}}\" }\n";
    let desk = Desk::with(graph, &[("a.sh", "echo '{\"said\": \"one\"}'")]);
    desk.write("data/x", "");
    let http = "http = [{ url = 'https://x.org', methods = ['GET'], private = true }]";
    desk.write(
        "hotcell.toml",
        &format!("[grants.'scripts/a.sh']\n{http}\nfs = [{{ host = 'data', guest = '/data' }}]\n"),
    );
    desk.write("mcp.json", r#"{"mcpServers":{"s":{"command":"python3","args":["server.py"]}}}"#);
    let shown = text(&desk.output(&["trust", ".", "--yes"]));
    for expected in [
        "send requests to `https://x.org` with GET only, also where its name leads into a private network",
        "the MCP server `s` is {\"command\":\"python3\",\"args\":[\"server.py\"]}",
        "`scripts/a.sh` is pinned to its current content",
        "the directory `data` is `",
        "is trusted in its current state",
    ] {
        assert!(shown.contains(expected), "`{expected}` is not in {shown}");
    }
    let left_out = "its grants have no effect";
    assert!(!text(&desk.output(&["check", "."])).contains(left_out));
    desk.write("scripts/a.sh", "echo '{\"said\": \"two\"}'");
    let told = text(&desk.output(&["check", "."]));
    assert!(told.contains(left_out) && told.contains("`scripts/a.sh` was changed"), "{told}");
    let told = text(&desk.output(&["trust", "."]));
    assert!(told.contains("since it was trusted:") && told.contains("`scripts/a.sh` was changed"), "{told}");
    assert!(told.contains("confirmation needs a terminal"), "{told}");
    desk.output(&["trust", ".", "--yes"]);
    assert!(!text(&desk.output(&["check", "."])).contains(left_out));
}

/// Whatever a stranger calls things, a terminal shows it and does not do it.
#[test]
fn names_steer_no_terminal() {
    let name = "x\u{1b}[2J\u{9b}31m\u{202e}";
    let graph =
        format!("name: \"{name}\"\nstart: \"{name}\"\nnodes:\n  \"{name}\": {{ type: {name}, next: \"{name}\" }}\n");
    let desk = Desk::with(&graph, &[]);
    desk.write(&format!("{name}/graph.yaml"), &graph);
    let folder = desk.path(name).display().to_string();
    for arguments in
        [&["check", "."][..], &["check", ".", "--json"], &["run", "."], &["run", ".", "--json"], &["check", &folder]]
    {
        let told = text(&desk.output(arguments));
        assert!(!told.is_empty() && !told.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{told:?}");
        for line in told.lines().filter(|line| line.starts_with('{')) {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }
}

/// The plugin of the tests, with these requests.
pub(crate) fn probe(capabilities: &serde_json::Value) -> Vec<u8> {
    hotcell_plugin_tests::described(&serde_json::json!({
        "contract": "0.2.0", "name": "acme",
        "tools": [{ "name": "say", "description": "Does what it is told", "parameters": {
            "type": "object", "properties": { "do": { "type": "string" } }, "required": ["do"] } }],
        "hooks": [{ "point": "before-skill-load" }], "nodes": [{ "type": "work" }], "connector": { "modes": ["sync"] },
        "capabilities": capabilities,
    }))
}

#[test]
fn a_tool_is_called_by_hand() {
    let desk = desk();
    put(&desk, "acme.wasm", &probe(&serde_json::json!({ "ask": true })));
    let call = |arguments: &[&str]| {
        let output = desk.output(&[&["plugin", "call"], arguments].concat());
        (output.status.code(), text(&output))
    };
    let say = r#"{"do": "say", "text": "hello"}"#;
    let (code, told) = call(&["./acme.wasm", "say", say]);
    assert!(code == Some(0) && told.starts_with("hello\n"), "{told}");
    let ask = r#"{"do": "ask", "text": "Who?"}"#;
    let (code, told) = call(&["./acme.wasm", "say", ask]);
    assert!(code == Some(1) && told.contains("`ask`, questions to a person, which is not granted"), "{told}");
    let (code, told) = call(&["./acme.wasm", "say", ask, "--grant"]);
    assert!(code == Some(3) && told.contains("it asks: Who?") && told.contains("--answer"), "{told}");
    let (_, told) = call(&["./acme.wasm", "say", ask, "--grant", "--answer", "Ada"]);
    assert!(told.starts_with("Ada\n"), "{told}");
    for (arguments, part) in [
        (&["./acme.wasm", "sya", say][..], "did you mean `say`?"),
        (&["./acme.wasm", "say", "{}"], "the arguments do not fit"),
        (&["./acme.wasm", "say", "[1]"], "are a JSON object"),
        (&["./acme.wasm", "say", "{"], "the arguments are not JSON"),
        (&["acme", "say", say], "there is no plugin `acme`"),
        (&["acme", "say", say], "`hotcell plugin add FILE` installs one"),
        (&["./nothing.wasm", "say", say], "there is no file `./nothing.wasm`"),
    ] {
        let (code, told) = call(arguments);
        assert!(code == Some(2) && told.contains(part), "{arguments:?}: {told}");
    }
    desk.write("p/plugin.toml", "");
    let (_, told) = call(&["acme", "say", say, "--in", "p"]);
    assert!(told.contains("to call the plugin of this project, write `.` in place of its name"), "{told}");
    put(&desk, "plugins/acme.wasm", &probe(&serde_json::json!({ "ask": true })));
    let (code, told) = call(&["acme", "say", say]);
    assert!(code == Some(2) && told.contains("decide with: hotcell plugin grant acme"), "{told}");
    desk.output(&["plugin", "grant", "acme", "--yes"]);
    let (code, told) = call(&["acme", "say", say, "--verbose"]);
    assert!(code == Some(0) && told.contains("hello\n") && told.contains("used: 1 cell call"), "{told}");
}

/// What a plugin logs is progress, unless it is a warning.
#[test]
fn warnings_of_a_plugin_are_told_where_progress_is_not() {
    let graph = "name: x\nstart: shout\nnodes:\n  shout: { type: acme/say, inputs: { do: flood }, fallback: lost, next: done }\n  done: { type: end, output: done }\n  lost: { type: end, output: lost }\n";
    let desk = Desk::with(graph, &[]);
    put(&desk, "plugins/acme.wasm", &probe(&serde_json::json!({})));
    assert_eq!(desk.output(&["plugin", "grant", "acme", "--yes"]).status.code(), Some(0));
    let output = desk.output(&["run", ".", "--quiet"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("warning: acme: flood flood ") && !told.contains('▸'), "{told}");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"lost\n"[..]), "{told}");
}

#[test]
fn cases_are_chosen_by_name_and_told_in_full() {
    let desk = desk();
    put(&desk, "p/acme.wasm", &probe(&serde_json::json!({})));
    for name in ["greets-ada", "greets-bob", "fails"] {
        let case = r#"{"tool":"say","arguments":{"do":"say","text":"hi"},"expect":{"output":"hi"}}"#;
        desk.write(&format!("p/cases/{name}.json"), case);
    }
    let test = |arguments: &[&str]| {
        let output = desk.output(&[&["plugin", "test", "p", "--component", "p/acme.wasm"], arguments].concat());
        (output.status.code(), text(&output))
    };
    let (code, told) = test(&["--case", "greets"]);
    assert!(code == Some(0) && told.contains("2 passed, 0 failed") && !told.contains("fails"), "{told}");
    assert!(told.contains("2 cases have no baseline yet") && !told.contains("in cells"), "{told}");
    let (_, told) = test(&["--case", "ada", "--verbose"]);
    assert!(told.contains("1 case has no baseline yet") && told.contains("1 cell call, "), "{told}");
    for (project, part) in [
        ("nowhere", "there is no folder `nowhere`"),
        ("nowhere", "`--case TEXT` chooses cases by their names"),
        (".", "hotcell plugin new NAME"),
    ] {
        let output = desk.output(&["plugin", "test", project]);
        assert!(output.status.code() == Some(2) && text(&output).contains(part), "{project}: {}", text(&output));
    }
    let (code, told) = test(&["--case", "nobody"]);
    assert!(code == Some(2) && told.contains("the cases are fails, greets-ada, greets-bob"), "{told}");
}

/// What ships with hotcell needs no build.
#[test]
fn a_shipped_plugin_is_added_by_its_name_and_works() {
    let desk = desk();
    insta::assert_snapshot!(desk.told(&["plugin", "add", "calculator"]));
    let called = desk.output(&["plugin", "call", "calculator", "calculate", r#"{"expression": "1/3 + 1/6"}"#]);
    assert!(text(&called).contains("0.5") || text(&called).contains("1/2"), "{}", text(&called));
    assert!(text(&desk.output(&["plugin", "add", "calculator"])).contains("is here already"));
    let pinned = text(&desk.output(&["plugin", "grant", "calculator", "--yes"]));
    assert!(pinned.contains("it asks for nothing") && pinned.contains("pinned to sha256"), "{pinned}");
    let beyond = desk.output(&["plugin", "grant", "calculator", "--only", "http", "--yes"]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(text(&beyond).contains("`calculator` does not ask for `http`"), "{}", text(&beyond));
    insta::assert_snapshot!(desk.told(&["plugin", "add", "fetch"]));
    insta::assert_snapshot!(desk.told(&["plugin", "add", "calculater"]));
    let unknown = text(&desk.output(&["plugin", "add", "nonsense"]));
    assert!(unknown.contains("no plugin of that name ships with hotcell") && unknown.contains("audit, "), "{unknown}");
    let shipped = hotcell_runtime::shipped_plugins().unwrap();
    assert!(shipped.len() > 10 && shipped.is_sorted_by_key(|plugin| plugin.name.clone()));
    for plugin in shipped {
        let component = hotcell_runtime::plugins::Plugin::of_bytes(&plugin.component).unwrap();
        assert_eq!(component.description.name, plugin.name);
    }
}
