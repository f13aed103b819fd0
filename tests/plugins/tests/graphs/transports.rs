//! MCP servers over HTTP that a configuration of the Open Agent Specification names, by every transport: granted, called, and
//! refused without the grant or the certificate. A server that is a program is in `agent_spec`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotcell_loopback::mcp::{KEY, MESSAGES, echoed, initialized, listed, listen, serve_events};
use hotcell_loopback::tls::{certificates, in_front_of};
use hotcell_runtime::mcp::{HttpServer, HttpSettings, Identity, serve_http};
use hotcell_runtime::{CancellationToken, Host, HostOptions, Nobody, Outcome, ToolCatalog};
use serde_json::{Value, json};

use crate::agent_spec::{call_of, desk, flow, inputs, nobody_asked, saying, text};
use crate::desk::Desk;

/// A transport to the server `library`.
fn transport(component_type: &str, url: &str, own: Value) -> Value {
    let mut transport = json!({ "component_type": component_type, "id": "library", "name": "library", "url": url });
    transport.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    transport
}

/// The certificate and the key that a client shows, and the authority of the server. They lie in `folder`, as seen from the
/// folder of the configuration.
fn identity(folder: &Path, client: &str) -> Value {
    let file = |name: String| folder.join(name).to_str().unwrap().to_owned();
    json!({
        "cert_file": file(format!("{client}.pem")), "key_file": file(format!("{client}.key")),
        "ca_file": file("ca.pem".to_owned()),
    })
}

/// A folder whose flow calls the function `name` of the server behind a transport, with these texts.
fn calling(name: &str, arguments: &Value, transport: &Value) -> Desk {
    let names: Vec<Value> = arguments.as_object().unwrap().keys().map(|name| text(name)).collect();
    let function = json!({
        "component_type": "MCPTool", "id": "tool", "name": name, "inputs": names, "outputs": [text("y")],
        "client_transport": transport,
    });
    desk(&flow(json!(names), &[call_of(function)], text("y")))
}

/// The same, with a policy of the function's own.
fn calling_with(policy: Value, transport: &Value) -> Desk {
    let function = json!({
        "component_type": "MCPTool", "id": "tool", "name": "echo", "inputs": [text("text")], "outputs": [text("y")],
        "client_transport": transport, "retry_policy": policy,
    });
    let mut flow = flow(json!([text("text")]), &[call_of(function)], text("y"));
    flow["agentspec_version"] = "26.3.1".into();
    desk(&flow)
}

/// A server over Streamable HTTP that answers the calls of its tool in order with what is said here, and all others as it
/// should: with a status, with nothing (`gone`), or as a tool that failed. It counts them.
async fn failing(answers: Vec<&'static str>) -> (SocketAddr, Arc<AtomicUsize>) {
    let (address, mut requests) = listen().await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            let answer = match taken.body["method"].as_str() {
                None => {
                    taken.respond("405 Method Not Allowed", "text/plain", "").await;
                    continue;
                }
                Some("initialize") => initialized(&taken.body),
                Some("tools/list") => listed(&taken.body),
                Some("tools/call") => match answers.get(counted.fetch_add(1, Ordering::SeqCst)) {
                    None => echoed(&taken.body),
                    Some(&"gone") => continue,
                    Some(&"failed") => {
                        let result = json!({ "isError": true, "content": [{ "type": "text", "text": "no 503" }] });
                        json!({ "jsonrpc": "2.0", "id": taken.body["id"], "result": result }).to_string()
                    }
                    Some(status) => {
                        taken.respond(status, "text/plain", "not now").await;
                        continue;
                    }
                },
                Some(_) => {
                    taken.respond("202 Accepted", "text/plain", "").await;
                    continue;
                }
            };
            taken.respond("200 OK", "application/json", &answer).await;
        }
    });
    (address, calls)
}

fn grant(desk: &Desk, origin: &str) {
    desk.settings(&format!("[grants.\"mcp:library\"]\nhttp = [\"{origin}\"]"));
}

/// How a run ends: its output, or the error.
async fn ended(desk: &Desk, arguments: &Value) -> Result<String, String> {
    let host = desk.host(&nobody_asked());
    let report = desk.start(&host, inputs(arguments.clone()), Arc::new(Nobody)).await.unwrap();
    match report.outcome {
        Outcome::Completed { output } => Ok(output),
        Outcome::Failed { error, .. } => Err(error),
        other => panic!("{other:?}"),
    }
}

/// That the call is refused without a grant, in which the address is named, and gives `expected` with it.
async fn is_called(desk: &Desk, arguments: &Value, origin: &str, expected: &str) {
    let refused = ended(desk, arguments).await.unwrap_err();
    assert!(refused.contains("[grants.\"mcp:library\"]") && refused.contains(origin), "{refused}");
    grant(desk, origin);
    assert_eq!(ended(desk, arguments).await, Ok(json!({ "y": expected }).to_string()));
}

/// hotcell itself as a server, with the tool `speak` of a plugin. The folder has to outlive it.
async fn hotcell() -> (Desk, HttpServer, CancellationToken) {
    let shop = Desk::new("");
    saying(&shop);
    let mut offering = ToolCatalog::new(Host::new(HostOptions::isolated()).unwrap());
    offering.add_plugins(&shop.path("")).unwrap();
    let identity = Identity { name: "library".to_owned(), version: "1".to_owned() };
    let end = CancellationToken::new();
    let server = serve_http(Arc::new(offering), identity, HttpSettings::default(), &end).await.unwrap();
    (shop, server, end)
}

#[tokio::test(flavor = "multi_thread")]
async fn streamable_http() {
    let (_shop, server, _end) = hotcell().await;
    let origin = format!("http://{}", server.address());
    let transport = transport("StreamableHTTPTransport", &format!("{origin}/mcp"), json!({}));
    let arguments = json!({ "do": "say", "text": "hello" });
    is_called(&calling("speak", &arguments, &transport), &arguments, &origin, "hello").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events() {
    let server = serve_events(MESSAGES, "").await.unwrap();
    let origin = format!("http://{server}");
    let arguments = json!({ "text": "hello" });
    let headers = json!({ "headers": { KEY.0: KEY.1 } });
    let with_headers = transport("SSETransport", &format!("{origin}/sse"), headers);
    is_called(&calling("echo", &arguments, &with_headers), &arguments, &origin, "hello").await;

    // The headers of the document are those that are sent.
    let desk = calling("echo", &arguments, &transport("SSETransport", &format!("{origin}/sse"), json!({})));
    grant(&desk, &origin);
    let refused = ended(&desk, &arguments).await.unwrap_err();
    assert!(refused.contains("`library`") && refused.contains("400"), "{refused}");
}

/// A server behind TLS that wants a certificate: one that the right authority signed is good, another is not.
async fn with_certificates(
    behind: SocketAddr,
    name: &str,
    arguments: &Value,
    transport: impl Fn(&str, Value) -> Value,
) {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path()).unwrap();
    let origin = format!("https://localhost:{}", in_front_of(folder.path(), behind).await.unwrap());
    let beside = |desk: &Desk| {
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), desk.path(file.file_name().to_str().unwrap())).unwrap();
        }
    };
    let desk = calling(name, arguments, &transport(&origin, identity(Path::new(""), "client")));
    beside(&desk);
    is_called(&desk, arguments, &origin, "hello").await;

    // Keys outside of the folder are not for whoever wrote the configuration to choose.
    let desk = calling(name, arguments, &transport(&origin, identity(folder.path(), "client")));
    grant(&desk, &origin);
    let refused = ended(&desk, arguments).await.unwrap_err();
    assert!(refused.contains("ca.pem` lies outside of the agent's folder"), "{refused}");
    let directory = format!("fs = [{{ host = \"{}\", guest = \"/keys\" }}]", folder.path().display());
    assert!(refused.contains(&format!("[grants.\"mcp:library\"]\n{directory}")), "{refused}");
    desk.settings(&directory);
    assert_eq!(ended(&desk, arguments).await, Ok(json!({ "y": "hello" }).to_string()));

    let desk = calling(name, arguments, &transport(&origin, identity(Path::new("."), "stranger")));
    beside(&desk);
    grant(&desk, &origin);
    let refused = ended(&desk, arguments).await.unwrap_err();
    assert!(refused.contains("`library`") && refused.contains("alert"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streamable_http_with_certificates_of_both_sides() {
    let (_shop, server, _end) = hotcell().await;
    let arguments = json!({ "do": "say", "text": "hello" });
    with_certificates(server.address(), "speak", &arguments, |origin, identity| {
        transport("StreamableHTTPmTLSTransport", &format!("{origin}/mcp"), identity)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_with_certificates_of_both_sides() {
    let server = serve_events(MESSAGES, "").await.unwrap();
    with_certificates(server, "echo", &json!({ "text": "hello" }), |origin, mut identity| {
        identity["headers"] = json!({ KEY.0: KEY.1 });
        transport("SSEmTLSTransport", &format!("{origin}/sse"), identity)
    })
    .await;
}

/// A policy without pauses.
fn at_once(most: u32, statuses: Value) -> Value {
    json!({ "max_attempts": most, "initial_retry_delay": 0, "max_retry_delay": 0, "recoverable_statuses": statuses })
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_tried_again_as_a_transport_and_its_tools_say() {
    let arguments = json!({ "text": "hello" });
    let (none, by_transport) = (Value::Null, at_once(2, json!({ "409": [] })));
    let busy = "503 Service Unavailable";
    for (answers, of_transport, of_tool, calls, expected) in [
        (&[busy, "409 Conflict"][..], &by_transport, &none, 3, Ok("hello")),
        (&["gone"], &by_transport, &none, 2, Ok("hello")),
        (&[busy; 3], &by_transport, &none, 3, Err("503")),
        (&["400 Bad Request"], &by_transport, &none, 1, Err("400")),
        (&["429 Too Many Requests"], &by_transport, &none, 1, Err("429")),
        (&[busy], &none, &none, 1, Err("503")),
        // A tool that failed has answered, whatever it says.
        (&["failed"], &by_transport, &none, 1, Err("no 503")),
        // What is said of a tool counts before what is said of its server.
        (&[busy; 4], &by_transport, &at_once(4, json!({})), 5, Ok("hello")),
        (&[busy], &by_transport, &at_once(0, json!({})), 1, Err("503")),
        (&["429 Too Many Requests"], &by_transport, &at_once(1, json!({ "429": [] })), 2, Ok("hello")),
    ] {
        let (address, counted) = failing(answers.to_vec()).await;
        let origin = format!("http://{address}");
        let policy = json!({ "retry_policy": of_transport });
        let there = transport("StreamableHTTPTransport", &format!("{origin}/mcp"), policy);
        let desk = calling_with(of_tool.clone(), &there);
        grant(&desk, &origin);
        let ended = ended(&desk, &arguments).await;
        match (ended, expected) {
            (Ok(output), Ok(text)) => assert_eq!(output, json!({ "y": text }).to_string(), "{answers:?}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{answers:?}: {error}"),
            (ended, _) => panic!("{answers:?}: {ended:?}"),
        }
        assert_eq!(counted.load(Ordering::SeqCst), calls, "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_asked_again() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let origin = format!("http://{nobody}");
    let arguments = json!({ "text": "hello" });
    let there = transport("StreamableHTTPTransport", &format!("{origin}/mcp"), json!({}));
    let desk = calling_with(at_once(3, json!({})), &there);
    grant(&desk, &origin);
    let refused = ended(&desk, &arguments).await.unwrap_err();
    assert!(refused.contains("`library`") && refused.contains("cannot be reached"), "{refused}");
}
