//! `hotcell run`

use std::io::{self, IsTerminal as _};

use hotcell_graph::Object;
use hotcell_runtime::{Agent, Loading, RunInput, UserKey, Which};

use super::drive::Drive;
use super::given::{input, object, variables};
use super::{Context, origin, repl, run_far};
use crate::arguments::Run;
use crate::exit::{Exit, Failure};
use crate::far::Client;
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Run) -> Result<Exit, Failure> {
    if let Some(client) = Client::of(&arguments.far, &context.screen)? {
        return run_far::perform(&context.for_server(&client), client, arguments);
    }
    let has_inputs = arguments.inputs.is_some();
    let mut given = RunInput {
        input: input(arguments.prompt)?,
        variables: variables(arguments.variables)?,
        state: match (arguments.inputs, arguments.state) {
            (Some(inputs), _) => object("--inputs", &inputs)?,
            (None, Some(state)) => object("--state", &state)?,
            (None, None) => Object::default(),
        },
        thread: arguments.thread,
        origin: origin::of(&arguments.session, &arguments.path, &UserKey::of_user()),
        ..RunInput::default()
    };
    let on_a_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && context.screen.is_terminal();
    let session = &arguments.session;
    let converse =
        given.input.is_none() && given.state.is_empty() && on_a_terminal && !session.no_input && !session.json;
    let drive = Drive::new(context, arguments.session)?;
    let name = arguments.which.agent.as_deref().map_or(Which::Only, Which::Named);
    let loading = Loading { agent: name, components: &arguments.parts.components };
    let agent = drive.load(&arguments.path, &loading)?;
    if let Some(refused) = misplaced(&agent, &given, has_inputs) {
        return Err(drive.refuse(refused)?);
    }
    let strict = drive.is_strict() || agent.strict;
    if strict {
        origin::make_strict(&mut given.origin);
    }
    if converse {
        return repl::perform(context, &drive, &arguments.path, &loading, agent, &given);
    }
    drive.go(strict, |host, session| async move { host.run(&agent, given, session).await })
}

/// What is given to an agent that has no place for it. A prompt may also be the answer to the last question of a thread.
fn misplaced(agent: &Agent, given: &RunInput, has_inputs: bool) -> Option<Failure> {
    let name = one_line(&agent.graph.name, 100);
    let is_flow = agent.graph.results.is_some();
    if given.input.is_some() && given.thread.is_none() && !agent.graph.takes_text() {
        let refused = Failure::refused(format!("nothing in `{name}` uses a prompt"));
        let (option, what) = if is_flow { ("--inputs", "its inputs") } else { ("--state", "values of its state") };
        return Some(refused.help(format!("leave it out, and give {what} with `{option} JSON`")));
    }
    (has_inputs && !is_flow).then(|| {
        Failure::refused(format!("`{name}` is not a flow, so it has no inputs"))
            .help("give values of its state with `--state JSON`")
    })
}
