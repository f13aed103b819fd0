//! `hotcell serve` as a process: where it listens, how it ends, and what becomes of runs when it is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

use hotcell_journal::RunStatus;
use serde_json::{Value, json};

use crate::desk::{Desk, chain, completed};

/// A server that runs.
struct Serving {
    child: Child,
    address: String,
}

impl Drop for Serving {
    /// No server is left behind by a test that fails.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
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
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Serving { child, address }
    }

    /// The status and the JSON of a reply.
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    fn kill(mut self) {
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
