//! `hotcell convert`: an agent in the Open Agent Specification.

use hotcell_graph::diagnostic::render;
use hotcell_runtime::{Loading, NotConverted, Which};

use super::{Context, HostArguments, check_output, put_data};
use crate::arguments::Convert;
use crate::exit::{Exit, Failure};
use crate::untrusted::lines;

pub(super) fn perform(context: &Context, arguments: Convert) -> Result<Exit, Failure> {
    check_output(arguments.to.output.as_deref())?;
    let host = context.host(HostArguments {
        without_runs: true,
        // What a tool takes is written into the configuration, and only its server knows it.
        starts_programs: true,
        ..arguments.more.into()
    })?;
    let agent = arguments.which.agent.as_deref().map_or(Which::Only, Which::Named);
    let converted = host.convert(&arguments.path, &Loading { agent, components: &arguments.parts.components });
    context.screen.worked();
    let converted = match converted {
        Ok(converted) => converted,
        Err(NotConverted::Load(failure)) => {
            context.screen.line(render(&failure.diagnostics, context.screen.colour()).trim_end());
            return Err(Failure::said(Exit::Refused));
        }
        Err(NotConverted::Inexpressible(reasons)) => {
            for reason in reasons {
                context.screen.line(&format!("error: {}", lines(&reason)));
            }
            let path = arguments.path.display();
            return Err(Failure::refused(format!("`{path}` cannot be expressed in the Open Agent Specification")));
        }
    };
    for difference in &converted.differences {
        context.screen.warning(&lines(difference));
    }
    put_data(&converted.text, arguments.to.output.as_deref())?;
    Ok(Exit::Done)
}
