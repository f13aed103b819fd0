//! A connector in Rust.

use hotcell_plugin::{Error, Json, Reply, Request, Value, connector, http, json, plugin};

/// How the author of the graph sets the connector up.
#[derive(Value)]
pub struct Config {
    /// Where to post to.
    url: String,
}

/// Posts messages to a server.
#[connector(modes = ["sync", "callback"], receive = receive)]
pub fn send(request: Request<Json, Config>) -> Result<Reply<Json>, Error> {
    let mut message = request.input;
    if let Some(callback) = &request.callback {
        message["callback"] = json!({ "url": callback.url, "session": callback.session });
    }
    let answer = http::post(request.config.url).json(&message).send()?.success()?;
    if request.callback.is_some() {
        return Ok(Reply::Accepted);
    }
    Ok(Reply::Done(answer.json()?))
}

fn receive(_request: Request<Json, Config>, body: Json) -> Result<Json, Error> {
    match body.get("answer") {
        Some(answer) => Ok(answer.clone()),
        None => Err(Error::invalid_input("the server sent no `answer`")),
    }
}

plugin! {
    name: "{{name}}",
    connector: send,
    capabilities: { http: ["https://api.example.org"] },
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{Reply, Request, http, json, testing::Surroundings};

    use super::{Config, send};

    #[test]
    fn the_answer_of_the_server_is_the_answer() {
        let surroundings = Surroundings::new().http(|request| {
            assert_eq!((request.method.as_str(), request.body.as_slice()), ("POST", br#"{"text":"hello"}"#.as_slice()));
            Ok(http::Response { status: 200, headers: Vec::new(), body: br#"{"id": 7}"#.to_vec() })
        });
        let config = Config { url: "https://api.example.org/messages".to_owned() };
        let request = Request { input: json!({ "text": "hello" }), config, callback: None, metadata: Vec::new() };
        assert_eq!(surroundings.run(|| send(request)).result, Ok(Reply::Done(json!({ "id": 7 }))));
    }
}
