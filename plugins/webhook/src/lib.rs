//! Hands what a graph says to another system over HTTP, and takes the answer at once or later.
//!
//! The other system gets `{"input": ...}` as JSON. In the mode `callback` there is also `"callback": {"url", "session"}`:
//! it answers with any status from 200 to 299 and sends its result to that address later, with that session. The
//! server has to be granted (capability `http`), and so have the secrets that its headers need.

use std::collections::BTreeMap;
use std::time::Duration;

use hotcell_plugin::http::{self, Response};
use hotcell_plugin::{Error, Json, Reply, Request, Value, connector, json, plugin, secrets};

plugin! {
    connector: webhook,
    capabilities: { http: ["*"], secret: { WEBHOOK_TOKEN: "for headers of requests" } },
}

/// How the author of the graph set the connector up.
#[derive(Debug, PartialEq, Value)]
struct Config {
    /// The address of the other system, with `https://`.
    url: String,
    /// The method.
    #[value(default = "POST")]
    method: Method,
    /// Headers to send, by name.
    #[value(default)]
    headers: BTreeMap<String, String>,
    /// Headers with a secret in them.
    #[value(default)]
    secret_headers: Vec<SecretHeader>,
    /// How many seconds to wait for the connection, and for each part of the answer.
    #[value(default = 30)]
    timeout_seconds: u16,
    /// Where in the answer the result lies, as a JSON pointer such as `/data/result`; otherwise it is the whole answer.
    result: Option<String>,
}

/// A method that sends something.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
enum Method {
    #[value(rename = "POST")]
    Post,
    #[value(rename = "PUT")]
    Put,
    #[value(rename = "PATCH")]
    Patch,
}

/// A header with a secret in it.
#[derive(Debug, PartialEq, Value)]
struct SecretHeader {
    /// The name of the header, such as `authorization`.
    header: String,
    /// The name of the secret, which has to be granted.
    #[value(default = "WEBHOOK_TOKEN")]
    secret: String,
    /// What stands before it, such as `Bearer `.
    #[value(default = "")]
    before: String,
}

/// Sends JSON to the address of another system and gives its answer.
#[connector(modes = ["sync", "callback"], receive = receive)]
fn webhook(request: Request<Json, Config>) -> Result<Reply<Json>, Error> {
    let config = &request.config;
    let mut body = json!({ "input": request.input });
    if let Some(callback) = &request.callback {
        body["callback"] = json!({ "url": callback.url, "session": callback.session });
    }
    let method = match config.method {
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
    };
    let mut outgoing = http::Request::new(method, &config.url)
        .json(&body)
        .header("accept", "application/json")
        .timeout(Duration::from_secs(config.timeout_seconds.into()));
    for (name, value) in &config.headers {
        outgoing = outgoing.header(name, value);
    }
    for header in &config.secret_headers {
        let placeholder = secrets::placeholder(&header.secret)?;
        outgoing = outgoing.header(&header.header, format!("{}{placeholder}", header.before));
    }
    let response = outgoing.send()?.success()?;
    match request.callback {
        Some(_) => Ok(Reply::Accepted),
        None => Ok(Reply::Done(result(answer(&response)?, config)?)),
    }
}

/// Reads what the other system sent later.
fn receive(request: Request<Json, Config>, body: Json) -> Result<Json, Error> {
    result(body, &request.config)
}

/// The answer as JSON; what is not JSON is a text, and nothing is null.
fn answer(response: &Response) -> Result<Json, Error> {
    let says_json = response.header("content-type").is_some_and(|kind| kind.contains("json"));
    match response.json::<Json>() {
        Ok(json) => Ok(json),
        Err(error) if says_json => Err(error),
        Err(_) if response.body.is_empty() => Ok(Json::Null),
        Err(_) => response.text().map(Json::from),
    }
}

fn result(answer: Json, config: &Config) -> Result<Json, Error> {
    let Some(pointer) = &config.result else { return Ok(answer) };
    let found = answer.pointer(pointer).cloned();
    found.ok_or_else(|| {
        Error::other(format!("the answer has nothing at `{pointer}`, where the setting `result` points"))
    })
}

#[cfg(test)]
mod tests;
