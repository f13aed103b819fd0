//! Connectors whose answers come later: by hand, over HTTP, and from other processes than the one that asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command};

use hotcell_journal::{Fact, RunStatus};

use crate::desk::Desk;

const GRAPH: &str = r#"name: order
start: place
nodes:
  place:
    type: acme/connector
    mode: callback
    inputs: { when: later, order: "{{initial_prompt}}" }
    state_updates: { answer: "{{output}}" }
    fallback: lost
    next: done
  done: { type: end, output: "{{answer}}" }
  lost: { type: end, output: "lost: {{place_error}}" }
"#;

fn desk(modes: &[&str]) -> Desk {
    let desk = Desk::with(GRAPH, &[]);
    std::fs::create_dir(desk.path("plugins")).unwrap();
    std::fs::write(desk.path("plugins/acme.wasm"), hotcell_plugin_tests::connector("acme", modes)).unwrap();
    // The probe has a hook, too.
    assert_eq!(desk.output(&["plugin", "grant", "acme", "--yes"]).status.code(), Some(0));
    desk
}

/// The command, knowing where answers are sent.
fn with_url(desk: &Desk, url: &str, arguments: &[&str]) -> Command {
    let mut command = desk.hotcell(arguments);
    command.env("HOTCELL_CALLBACK_URL", url).env("RUST_LOG", "hotcell::plugin=info");
    command
}

/// Starts a run that waits for its callback, and gives the address and the session that the connector was handed.
fn handed_over(desk: &Desk, url: &str) -> (String, String) {
    let output = with_url(desk, url, &["run", ".", "7"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    let rest = told.split("callback ").nth(1).unwrap_or_else(|| panic!("{told}"));
    let mut words = rest.split_whitespace().map(|word| word.trim_matches('"').to_owned());
    (words.next().unwrap(), words.next().unwrap())
}

#[test]
fn an_answer_by_hand_completes_the_run_in_another_process() {
    let desk = desk(&["sync", "callback"]);
    let (url, session) = handed_over(&desk, "https://hooks.example.org/answers");
    assert_eq!(url, "https://hooks.example.org/answers");
    let run = desk.only_run();
    assert!(session.starts_with(run.as_str()) && session.len() == run.as_str().len() + 33, "{session}");
    insta::assert_snapshot!(desk.told(&["runs", "show", run.as_str()]));
    // Neither the process that asked nor its environment is needed for the answer.
    let output = desk.output(&["runs", "answer", run.as_str(), r#"{"ok":true}"#, "--resume"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"received\":{\"ok\":true},\"for\":{\"when\":\"later\",\"order\":\"7\"}}\n"
    );
    // Handing over happened once, whatever was resumed.
    let entries = desk.entries(&run);
    let effects = entries.iter().filter(|entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == "plugin"));
    assert_eq!(effects.count(), 2, "one for sending, one for receiving");
}

#[test]
fn an_answer_that_is_none_fails_the_node() {
    let desk = desk(&["callback"]);
    handed_over(&desk, "https://hooks.example.org");
    let run = desk.only_run();
    let output = desk.output(&["runs", "answer", run.as_str(), "nonsense", "--resume"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.starts_with("lost:") && stdout.contains("this is no answer"), "{stdout}");
}

struct Listener {
    child: Child,
    address: String,
}

impl Listener {
    fn start(desk: &Desk) -> Self {
        let mut child = desk.spawn(&["runs", "listen", "127.0.0.1:0"]);
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap().to_owned();
        Listener { child, address }
    }

    /// Sends a request and gives the status and the body.
    fn send(&self, method: &str, path: &str, header: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.trim_end().to_owned())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_answer_over_http_needs_the_session_and_counts_once() {
    let desk = desk(&["callback"]);
    let listener = Listener::start(&desk);
    let (url, session) = handed_over(&desk, &format!("http://{}/answers", listener.address));
    assert_eq!(url, format!("http://{}/answers", listener.address));
    let bearer = format!("authorization: Bearer {session}");
    let forged = format!("{}{}", &session[..session.len() - 1], if session.ends_with('0') { '1' } else { '0' });
    let run = desk.only_run();
    for (method, path, header, body, status, told) in [
        ("GET", "/answers", &*bearer, "", 405, "POST"),
        ("POST", "/answers", "", "{}", 401, "the session is missing"),
        ("POST", "/answers", "authorization: Basic x", "{}", 401, "the session is missing"),
        ("POST", &*format!("/?session={forged}"), "", "{}", 404, "no run waits"),
        ("POST", &*format!("/?session={run}."), "", "{}", 404, "no run waits"),
        ("POST", "/?session=.", "", "{}", 404, "no run waits"),
        ("POST", "/answers", &*bearer, "{ok: 1", 400, "not valid JSON"),
        ("POST", "/answers", &*bearer, &*format!("\"{}\"", "x".repeat(1 << 20)), 413, "more than"),
    ] {
        let (got, body) = listener.send(method, path, header, body);
        assert!(got == status && body.contains(told), "{method} {path} {header}: {got} {body}");
        assert_eq!(desk.record(run.as_str()).status, RunStatus::Waiting);
    }
    let (status, body) = listener.send("POST", &format!("/answers?session={session}"), "", r#"{"ok":true}"#);
    assert_eq!((status, &*body), (202, &*format!("{{\"run\":\"{run}\"}}")));
    // The listener goes on with the run by itself.
    let record = desk.ended(&run);
    assert_eq!(
        (record.status, record.outcome.as_deref()),
        (RunStatus::Completed, Some(r#"{"received":{"ok":true},"for":{"when":"later","order":"7"}}"#))
    );
    let (status, body) = listener.send("POST", "/answers", &bearer, "{}");
    assert!(status == 409 && body.contains("answered before"), "{status} {body}");
}

/// What was taken and not gone on with, because whoever took it died at that moment, is taken up by the next listener.
#[test]
fn an_answer_outlives_the_listener_that_took_it() {
    let desk = desk(&["callback"]);
    let (_, session) = handed_over(&desk, "http://127.0.0.1:9/answers");
    let run = desk.only_run();
    assert!(desk.output(&["runs", "answer", run.as_str(), r#"{"ok":true}"#]).status.success());
    assert_eq!(desk.record(run.as_str()).status, RunStatus::Waiting);
    let listener = Listener::start(&desk);
    let record = desk.ended(&run);
    let expected = r#"{"received":{"ok":true},"for":{"when":"later","order":"7"}}"#;
    assert_eq!((record.status, record.outcome.as_deref()), (RunStatus::Completed, Some(expected)));
    // Its sender hears that it is there.
    let (status, body) = listener.send("POST", "/answers", &format!("authorization: Bearer {session}"), "{}");
    assert!(status == 409 && body.contains("answered before"), "{status} {body}");
}

#[test]
fn without_an_address_nothing_is_handed_over() {
    let desk = desk(&["callback"]);
    let output = desk.output(&["run", ".", "7", "--quiet"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("set `HOTCELL_CALLBACK_URL`"), "{stdout}");
}

/// Whoever holds connections open, silently or in the middle of a head, keeps nobody from answering.
#[test]
fn an_answer_arrives_beside_connections_that_say_nothing() {
    let desk = desk(&["callback"]);
    let listener = Listener::start(&desk);
    let (_, session) = handed_over(&desk, &format!("http://{}/answers", listener.address));
    let held: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(&listener.address).unwrap();
            // The server may have closed it for a newer one.
            let _ = match number % 3 {
                0 => Ok(()),
                1 => write!(stream, "POST /answers HTTP/1.1\r\nhost: x\r\n"),
                _ => write!(stream, "POST /answers HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{"),
            };
            stream
        })
        .collect();
    let (status, told) = listener.send("POST", "/answers", &format!("authorization: Bearer {session}"), "{}");
    assert!((200..300).contains(&status), "{status} {told}");
    drop(held);
}
