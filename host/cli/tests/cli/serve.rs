//! `hotcell serve` as a process: where it listens, how it ends, and what becomes of runs when it is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::thread::JoinHandle;

use hotcell_journal::RunStatus;
use serde_json::{Value, json};

use crate::desk::{Desk, chain, completed};

/// A server that runs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    /// What it said before it began to serve
    told: String,
    /// What it said since it began to serve, when it has ended
    said: Option<JoinHandle<Vec<String>>>,
}

impl Drop for Serving {
    /// No server is left behind by a test that fails.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    pub(crate) fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--color", "never"], arguments].concat();
        let mut child = desk.spawn(&arguments);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut told = String::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{told}")).unwrap();
            if let Some((_, address)) = line.split_once("http://") {
                break address.split(';').next().unwrap().to_owned();
            }
            told.push_str(&line);
        };
        let said = Some(std::thread::spawn(move || lines.map_while(Result::ok).collect()));
        Serving { child, address, told, said }
    }

    /// The status and the JSON of a reply.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.ask_as("", method, path, body)
    }

    /// The status and the JSON of a reply to whoever has a key.
    fn ask_as(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let key = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Ends it, and gives the lines that it wrote to standard error.
    fn said(mut self) -> Vec<String> {
        let said = self.said.take().unwrap();
        assert_eq!(self.end(), Some(0));
        said.join().unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_server_that_is_killed_goes_on_with_its_runs_when_it_is_started_again() {
    const NODES: usize = 12;
    let desk = chain(NODES, 25);
    for committed in [0, 3, 7, 11] {
        let server = Serving::start(&desk, &[]);
        let (status, run) = server.ask("POST", "/runs", Some(json!({})));
        assert_eq!(status, 200, "{run}");
        let run = run["run_id"].as_str().unwrap().to_owned();
        while completed(&desk.entries(&run.clone().into())).len() < committed {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        server.kill();
        let before = desk.entries(&run.clone().into());
        let server = Serving::start(&desk, &[]);
        let (status, result) = server.ask("GET", &format!("/runs/{run}/wait"), None);
        assert_eq!((status, result["run"]["standing"].clone()), (200, json!("completed")), "{result}");
        let after = desk.entries(&run.into());
        assert_eq!(after[..before.len()], before);
        let turns: Vec<&str> = completed(&after).into_iter().map(|(place, _)| place).collect();
        assert_eq!(turns, (1..=NODES + 1).map(|turn| turn.to_string()).collect::<Vec<_>>());
        assert_eq!(server.end(), Some(0));
    }
    assert!(desk.runs().iter().all(|run| run.status == RunStatus::Completed));
}

#[test]
fn what_goes_wrong_while_it_serves_is_told() {
    let desk = chain(1, 0);
    let server = Serving::start(&desk, &[]);
    let (_, agents) = server.ask("POST", "/agents/search", Some(json!({})));
    let agent = agents[0]["agent_id"].as_str().unwrap().to_owned();
    desk.write("graph.yaml", "name: chain\nstart: nowhere\nnodes:\n  done: { type: end }\n");
    while server.ask("GET", &format!("/agents/{agent}"), None).1["load_error"].is_null() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let said = server.said().join("\n");
    assert!(
        said.contains(&format!("warning: agent `{agent}`: the agent is served as it was before: error: ")),
        "{said}"
    );
    assert!(said.contains("nowhere") && said.contains("graph.yaml:2"), "{said}");
}

#[test]
fn a_log_in_json_has_names_and_nothing_that_was_said() {
    let desk = chain(1, 0);
    let server = Serving::start(&desk, &["--log-format", "json"]);
    let body = json!({ "input": "private words", "metadata": { "about": "private things" } });
    let (status, reply) = server.ask("POST", "/runs/wait?x=private", Some(body));
    let run = match status {
        200 => reply["run"]["run_id"].as_str().unwrap().to_owned(),
        // It may take no text: then it is begun without one.
        _ => server.ask("POST", "/runs/wait", Some(json!({}))).1["run"]["run_id"].as_str().unwrap().to_owned(),
    };
    server.ask("GET", &format!("/runs/{run}"), None);
    server.ask("GET", "/no/private/place", None);
    let lines = server.said();
    let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let find = |pairs: &[(&str, &str)]| {
        let fits = |record: &&Value| pairs.iter().all(|(name, value)| record[*name] == *value);
        records.iter().find(fits).unwrap_or_else(|| panic!("{pairs:?} in {lines:#?}"))
    };
    let begins = find(&[("target", "hotcell::run"), ("message", "begins"), ("run_id", &run)]);
    let rests = find(&[("target", "hotcell::run"), ("message", "rests"), ("status", "completed"), ("run_id", &run)]);
    let began = find(&[("message", "answered"), ("route", "/runs/wait"), ("method", "POST"), ("run_id", &run)]);
    let looked = find(&[("message", "answered"), ("route", "/runs/{run_id}"), ("run_id", &run)]);
    find(&[("message", "answered"), ("route", "unmatched")]);
    assert_eq!((&begins["request_id"], &rests["request_id"]), (&began["request_id"], &began["request_id"]));
    assert_ne!(looked["request_id"], began["request_id"]);
    for record in [begins, rests, began, looked] {
        assert!(record["agent"].is_string() && record["at"].is_string() && record["level"] == "info", "{record}");
    }
    assert!(began["status"] == 200 && began["elapsed_ms"].is_number(), "{began}");
    assert!(!lines.iter().any(|line| line.contains("private")), "{lines:#?}");
}

#[test]
fn a_variable_of_telemetry_that_cannot_be_used_is_refused_by_name() {
    let desk = chain(1, 0);
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["run", "."]] {
        let mut command = desk.hotcell(command);
        let output = command.envs(variables).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("`OTEL_EXPORTER_OTLP_PROTOCOL` has to be `http/protobuf`"), "{told}");
    }
}

#[test]
fn a_group_that_cannot_be_is_refused_and_one_that_nobody_defined_is_told() {
    let desk = chain(1, 0);
    for (groups, said) in [
        (&["finance"][..], "finance=ada,bob"),
        (&["=ada"], "not a valid name of a group"),
        (&["finance="], "not a valid name of a person"),
        (&["finance=ada,group:audit"], "not a valid name of a person"),
        (&["finance=ada", "finance=bob"], "is defined twice"),
    ] {
        let groups = groups.iter().flat_map(|group| ["--group", *group]);
        let arguments: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(groups).collect();
        let output = desk.output(&arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(said), "{arguments:?}: {told}");
    }
    let mesh = "name: press\nmanager: {enabled: false}\nagents:\n  chief: {agent_type: human, human_interface: default, \
                operator_ids: ['group:finance', 'group:audit', ada]}\nentry_points:\n  - {name: story, target: chief}\n";
    desk.write("press/mesh.yaml", mesh);
    let server = Serving::start(&desk, &["--group", "audit=ada, bob", "press"]);
    assert!(server.told.contains("finance") && !server.told.contains("audit"), "{}", server.told);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_listens_for_this_machine_alone() {
    let desk = chain(1, 0);
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = desk.output(&["serve", "--listen", address]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("127.0.0.1"), "{told}");
    }
    let output = desk.output(&["serve", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn keys_are_made_listed_and_taken_back() {
    let desk = chain(1, 0);
    let made =
        desk.output(&["serve", "key", "add", "desk app", "--role", "run", "--role", "operate", "--expires", "30d"]);
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let id = token.split('_').nth(1).unwrap().to_owned();
    let list = || String::from_utf8(desk.output(&["serve", "key", "list", "--json"]).stdout).unwrap();
    let listed: Value = serde_json::from_str(list().trim()).unwrap();
    assert_eq!(
        (listed["id"].clone(), listed["valid"].clone(), listed["roles"].clone()),
        (json!(id), json!(true), json!(["run", "operate"]))
    );
    assert!(!list().contains(token.split('_').nth(2).unwrap()));
    // With a key, the server may listen elsewhere, under names that are said.
    assert_eq!(desk.output(&["serve", "--listen", "0.0.0.0:0"]).status.code(), Some(2));
    let server = Serving::start(&desk, &[]);
    assert_eq!(server.ask("GET", "/runs", None).0, 401);
    assert_eq!(server.end(), Some(0));
    assert_eq!(desk.output(&["serve", "key", "revoke", &id]).status.code(), Some(0));
    assert_eq!(desk.output(&["serve", "key", "revoke", &id]).status.code(), Some(2));
    for wrong in [
        &["serve", "key", "add", "x"][..],
        &["serve", "key", "add", "x", "--role", "king"],
        &["serve", "key", "list", "--journal", "memory"],
    ] {
        assert_eq!(desk.output(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn what_cannot_be_served_is_told_and_the_rest_is_served() {
    let desk = chain(1, 0);
    desk.write("broken/graph.yaml", "name: [");
    let server = Serving::start(&desk, &[]);
    assert_eq!(server.ask("GET", "/health", None).0, 200);
    let (_, agents) = server.ask("POST", "/agents/search", Some(json!({})));
    assert_eq!(agents.as_array().unwrap().len(), 1);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn tenants_of_a_server_file_are_served_with_keys_of_their_own() {
    let desk = chain(1, 0);
    desk.write("one/agent/graph.yaml", "name: one\nstart: done\nnodes:\n  done: { type: end, output: one }\n");
    desk.write("two/agent/graph.yaml", "name: two\nstart: done\nnodes:\n  done: { type: end, output: two }\n");
    desk.write("server.toml", "state = 'kept'\n[tenants.acme]\nagents = ['one']\n[tenants.umbra]\nagents = ['two']\n");
    let add = |tenant: &[&str]| {
        let add = ["serve", "key", "add", "app", "--role", "run", "--config", "server.toml"];
        desk.output(&[&add[..], tenant].concat())
    };
    let key = |tenant: &str| String::from_utf8(add(&["--tenant", tenant]).stdout).unwrap().trim().to_owned();
    let (acme, umbra) = (key("acme"), key("umbra"));
    for (tenant, said) in
        [(&[][..], "--tenant"), (&["--tenant", "none"], "`acme`, `umbra`"), (&["--tenant", "A/B"], "lower-case")]
    {
        let refused = add(tenant);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && told.contains(said), "{tenant:?}: {told}");
    }
    let alone = desk.output(&["serve", "key", "add", "app", "--role", "run", "--tenant", "acme"]);
    assert_eq!(alone.status.code(), Some(2));
    let listed = String::from_utf8(desk.output(&["serve", "key", "list", "--config", "server.toml"]).stdout).unwrap();
    assert!(listed.contains("TENANT") && listed.contains("umbra"), "{listed}");
    for wrong in [
        &["--config", "server.toml", "one"][..],
        &["--config", "server.toml", "--trust"],
        &["--config", "server.toml", "--group", "a=b"],
        &["--config", "none.toml"],
    ] {
        assert_eq!(desk.output(&[&["serve"], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    let server = Serving::start(&desk, &["--config", "server.toml"]);
    for (key, own) in [(&acme, "one"), (&umbra, "two")] {
        let (status, run) = server.ask_as(key, "POST", "/runs/wait", Some(json!({})));
        assert_eq!((status, run["output"].clone()), (200, json!(own)), "{run}");
    }
    assert_eq!(server.ask("GET", "/runs", None).0, 401);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_folder_without_agents_is_served_with_a_warning() {
    let desk = Desk::new();
    desk.write("empty/notes.txt", "");
    let server = Serving::start(&desk, &["empty"]);
    assert_eq!(server.told, "warning: there are no agents in `empty`");
    assert_eq!(server.end(), Some(0));
}
