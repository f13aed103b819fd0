//! The functions of the agents of the test cases, and the tools beside them, as one component. A function asks the server that the
//! operator's configuration names (`server`) what to do: `POST /agents/NAME` with its input, answered with `{"output": ...}` or
//! `{"error": "..."}`. A tool, which has a behaviour as the tools of other cases (`behaviour.NAME`), tells the server of its call
//! (`POST /tools/NAME` with its arguments) before it does that. It must not know any case.

#[path = "../../case-tools/src/behaviour.rs"]
mod behaviour;

use contract::exports::hotcell::plugin::call_tool::{Error, Guest, Json};
use contract::hotcell::plugin::types::Failure;
use contract::hotcell::plugin::{ask, config};
use serde_json::Value;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, IncomingBody, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "tools",
    });
}

/// Bytes that one write moves at most.
const PART: usize = 4096;

struct CaseAgents;

impl Guest for CaseAgents {
    fn call(name: String, arguments: Json) -> Result<Json, Error> {
        let other = |message: String| Error::Other(failure(message));
        let server = config::get("server").ok_or_else(|| other("`server` is not configured".to_owned()))?;
        if let Some(behaviour) = config::get(&format!("behaviour.{name}")) {
            post(&server, &format!("/tools/{name}"), arguments.as_bytes()).map_err(other)?;
            return behaviour::perform(&behaviour, &arguments, config::get(&format!("value.{name}")));
        }
        let reply = post(&server, &format!("/agents/{name}"), arguments.as_bytes()).map_err(other)?;
        let reply: Value = serde_json::from_slice(&reply).map_err(|error| other(error.to_string()))?;
        match (reply.get("output"), reply["error"].as_str()) {
            (Some(output), _) => Ok(output.to_string()),
            (None, Some(error)) => Err(other(error.to_owned())),
            (None, None) => Err(other("the server answered neither an output nor an error".to_owned())),
        }
    }
}

fn failure(message: String) -> Failure {
    Failure { message, metadata: Vec::new() }
}

/// What the server answers to a body that is posted to it.
fn post(server: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, String> {
    let unusable = |()| format!("a request to `{server}{path}` cannot be made");
    let request = OutgoingRequest::new(Fields::new());
    request.set_method(&Method::Post).map_err(unusable)?;
    request.set_scheme(Some(&Scheme::Http)).map_err(unusable)?;
    request.set_authority(Some(server)).map_err(unusable)?;
    request.set_path_with_query(Some(path)).map_err(unusable)?;
    let outgoing = request.body().map_err(unusable)?;
    let reply = outgoing_handler::handle(request, None).map_err(|error| format!("`{server}`: {error}"))?;
    {
        let stream = outgoing.write().map_err(unusable)?;
        for part in body.chunks(PART) {
            stream.blocking_write_and_flush(part).map_err(|error| error.to_string())?;
        }
    }
    OutgoingBody::finish(outgoing, None).map_err(|error| error.to_string())?;
    reply.subscribe().block();
    let Some(Ok(reply)) = reply.get() else { return Err(format!("`{server}` gave no answer")) };
    let reply = reply.map_err(|error| format!("`{server}`: {error}"))?;
    let incoming = reply.consume().map_err(unusable)?;
    let mut whole = Vec::new();
    {
        let stream = incoming.stream().map_err(unusable)?;
        loop {
            match stream.blocking_read(PART as u64) {
                Ok(part) => whole.extend_from_slice(&part),
                Err(StreamError::Closed) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    drop(IncomingBody::finish(incoming));
    Ok(whole)
}

contract::export!(CaseAgents with_types_in contract);
