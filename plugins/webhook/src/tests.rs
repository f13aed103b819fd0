use hotcell_plugin::http::{self, Response};
use hotcell_plugin::testing::{Ran, Surroundings};
use hotcell_plugin::{Callback, Error, Json, Reply, Request, json};

use super::PLUGIN;

fn request(config: Json, callback: bool) -> Request<Json, Json> {
    let callback = callback.then(|| Callback { url: "https://h.example/c".to_owned(), session: "s1".to_owned() });
    Request { input: json!({"order": 7}), config, callback, metadata: Vec::new() }
}

/// Sends a request to a server that answers with `status` and shows what it got as its answer.
fn send(config: Json, callback: bool, status: u16) -> Result<Reply<Json>, Error> {
    let server = move |request: http::Request| {
        let got: Json = serde_json_text(&request.body);
        let body = json!({ "data": { "method": request.method, "headers": request.headers, "got": got } });
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Ok(Response { status, headers, body: body.to_string().into_bytes() })
    };
    let Ran { result, .. } =
        Surroundings::new().secret("KEY").http(server).run(|| PLUGIN.send(request(config, callback)));
    result
}

fn serde_json_text(bytes: &[u8]) -> Json {
    String::from_utf8_lossy(bytes).parse().unwrap_or_default()
}

#[test]
fn an_answer_at_once_is_the_result() {
    let reply = send(json!({"url": "https://a.example/in", "result": "/data/got"}), false, 200);
    assert_eq!(reply, Ok(Reply::Done(json!({"input": {"order": 7}}))));
}

#[test]
fn secrets_stay_placeholders() {
    let config = json!({"url": "https://a.example/in", "method": "PUT", "result": "/data", "headers": {"x-a": "1"},
        "secret_headers": [{"header": "authorization", "secret": "KEY", "before": "Bearer "}]});
    let Ok(Reply::Done(data)) = send(config, false, 200) else { panic!("no answer") };
    assert_eq!(data["method"], "PUT");
    assert_eq!(
        data["headers"],
        json!([
            ["content-type", "application/json"],
            ["accept", "application/json"],
            ["x-a", "1"],
            ["authorization", "Bearer secret:KEY"]
        ])
    );
}

#[test]
fn an_answer_that_comes_later_is_received() {
    let config = json!({"url": "https://a.example/in", "result": "/outcome"});
    assert_eq!(send(config.clone(), true, 202), Ok(Reply::Accepted));
    let received = PLUGIN.receive(request(config.clone(), true), json!({"outcome": [1]}));
    assert_eq!(received, Ok(json!([1])));
    let received = PLUGIN.receive(request(config, true), json!({"other": 1})).map_err(|error| error.kind());
    assert_eq!(received, Err("other"));
}

#[test]
fn failures_of_the_other_system_have_their_kind() {
    let config = json!({"url": "https://a.example/in"});
    assert_eq!(send(config.clone(), false, 503).map_err(|error| error.kind()), Err("unavailable"));
    assert_eq!(send(config, false, 404).map_err(|error| error.kind()), Err("other"));
    let refused = send(json!({"url": "https://a.example/in", "methd": "PUT"}), false, 200);
    assert!(refused.is_err_and(|error| error.message().starts_with("setting `methd` is not known")));
    let config = json!({"url": "https://a.example/in", "secret_headers": [{"header": "a", "secret": "OTHER"}]});
    assert_eq!(send(config, false, 200).map_err(|error| error.kind()), Err("denied"));
}

#[test]
fn cases_hold() {
    let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    assert_eq!(problems, Ok(Vec::new()));
}
