//! What `wit-bindgen` makes of the contract, and the way between its types and ours.

use crate::connector::Callback;
use crate::{Error, Failure, Json, Outcome, Plugin, Reply, Request, Verdict};

/// What the host offers. Only the functions that a plugin calls become imports of its component.
pub(crate) mod imports {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package hotcell:guest;
            world imports {
                import hotcell:plugin/types@0.2.0;
                import hotcell:plugin/state@0.2.0;
                import hotcell:plugin/log@0.2.0;
                import hotcell:plugin/progress@0.2.0;
                import hotcell:plugin/config@0.2.0;
                import hotcell:plugin/ask@0.2.0;
                import hotcell:plugin/kv@0.2.0;
                import hotcell:plugin/secrets@0.2.0;
                import hotcell:plugin/llm@0.2.0;
                import hotcell:plugin/other-tools@0.2.0;
            }
        ",
        generate_all,
    });
}

/// One world for each kind of plugin, with its export alone.
macro_rules! world {
    ($module:ident, $world:literal) => {
        #[doc(hidden)]
        pub mod $module {
            wit_bindgen::generate!({
                path: "wit",
                inline: $world,
                with: { "hotcell:plugin/types@0.2.0": crate::bindings::imports::hotcell::plugin::types },
                runtime_path: "::hotcell_plugin::macros::wit_bindgen::rt",
                pub_export_macro: true,
            });
        }
    };
}

world!(script, "package hotcell:guest-script; world script-guest { export hotcell:plugin/run-script@0.2.0; }");
world!(tools, "package hotcell:guest-tools; world tools-guest { export hotcell:plugin/call-tool@0.2.0; }");
world!(node, "package hotcell:guest-node; world node-guest { export hotcell:plugin/run-node@0.2.0; }");
world!(hooks, "package hotcell:guest-hooks; world hooks-guest { export hotcell:plugin/hook@0.2.0; }");
world!(connector, "package hotcell:guest-connector; world connector-guest { export hotcell:plugin/connect@0.2.0; }");

pub use imports::hotcell::plugin::types;

/// JSON text of the host's.
pub(crate) fn parsed(text: &str, what: &str) -> Result<Json, Error> {
    serde_json::from_str(text).map_err(|error| Error::other(format!("{what} is not JSON: {error}")))
}

/// An error of the host's.
pub(crate) fn taken(error: types::Error) -> Error {
    let failure = |failure: types::Failure| Failure { message: failure.message, metadata: failure.metadata };
    match error {
        types::Error::InvalidInput(inner) => Error::InvalidInput(failure(inner)),
        types::Error::Denied(inner) => Error::Denied(failure(inner)),
        types::Error::Unavailable(inner) => Error::Unavailable(failure(inner)),
        types::Error::Other(inner) => Error::Other(failure(inner)),
    }
}

fn failure(failure: Failure) -> types::Failure {
    types::Failure { message: failure.message, metadata: failure.metadata }
}

fn given(error: Error) -> types::Error {
    match error {
        Error::InvalidInput(inner) => types::Error::InvalidInput(failure(inner)),
        Error::Denied(inner) => types::Error::Denied(failure(inner)),
        Error::Unavailable(inner) => types::Error::Unavailable(failure(inner)),
        Error::Other(inner) => types::Error::Other(failure(inner)),
    }
}

/// Answers `call-tool.call`.
pub fn call_tool(plugin: &Plugin, name: &str, arguments: &str) -> Result<String, types::Error> {
    let call = || plugin.call_tool(name, input(arguments, "the arguments")?);
    call().map(|result| result.to_string()).map_err(given)
}

/// Answers `run-script.run`.
pub fn run_script(plugin: &Plugin) -> Result<String, types::Error> {
    plugin.run_script().map(|changes| changes.to_string()).map_err(given)
}

/// Answers `run-node.run`.
pub fn run_node(
    plugin: &Plugin,
    name: &str,
    fields: &str,
    inputs: &str,
) -> Result<node::exports::hotcell::plugin::run_node::Outcome, types::Error> {
    let run = || plugin.run_node(name, input(fields, "the fields")?, input(inputs, "the inputs")?);
    let Outcome { outputs, branch, metadata } = run().map_err(given)?;
    Ok(node::exports::hotcell::plugin::run_node::Outcome { outputs: outputs.to_string(), branch, metadata })
}

/// Answers `hook.on`.
pub fn on(
    plugin: &Plugin,
    point: &str,
    event: &str,
) -> Result<hooks::exports::hotcell::plugin::hook::Verdict, types::Error> {
    use hooks::exports::hotcell::plugin::hook::Verdict as Given;
    let on = || plugin.on(point, input(event, "the event")?);
    Ok(match on().map_err(given)? {
        Verdict::Proceed => Given::Proceed,
        Verdict::Change(event) => Given::Change(event.to_string()),
        Verdict::Refuse(reason) => Given::Refuse(failure(reason)),
    })
}

type WireRequest = connector::exports::hotcell::plugin::connect::Request;

/// Answers `connect.send`.
pub fn send(
    plugin: &Plugin,
    request: WireRequest,
) -> Result<connector::exports::hotcell::plugin::connect::Reply, types::Error> {
    use connector::exports::hotcell::plugin::connect::Reply as Given;
    let send = || plugin.send(request_of(request)?);
    Ok(match send().map_err(given)? {
        Reply::Done(answer) => Given::Done(answer.to_string()),
        Reply::Accepted => Given::Accepted,
    })
}

/// Answers `connect.receive`.
pub fn receive(plugin: &Plugin, request: WireRequest, body: &str) -> Result<String, types::Error> {
    let receive = || plugin.receive(request_of(request)?, input(body, "the body")?);
    receive().map(|answer| answer.to_string()).map_err(given)
}

fn request_of(request: WireRequest) -> Result<Request<Json, Json>, Error> {
    Ok(Request {
        input: input(&request.input, "the input")?,
        config: input(&request.config, "the settings")?,
        callback: request.callback.map(|callback| Callback { url: callback.url, session: callback.session }),
        metadata: request.metadata,
    })
}

/// JSON text of the caller's.
fn input(text: &str, what: &str) -> Result<Json, Error> {
    serde_json::from_str(text).map_err(|error| Error::invalid_input(format!("{what} are not JSON: {error}")))
}
