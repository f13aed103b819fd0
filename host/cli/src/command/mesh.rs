//! `hotcell mesh`: what is done with meshes beside running and serving them.

use hotcell_runtime::{CancellationToken, EvolveError, EvolveSettings};

use super::{Context, HostArguments, check_output, put_data, threads};
use crate::arguments::{Evolve, Mesh};
use crate::exit::{Exit, Failure};
use crate::stop;

pub(super) fn perform(context: &Context, arguments: Mesh) -> Result<Exit, Failure> {
    let Mesh::Evolve(arguments) = arguments;
    evolve(context, arguments)
}

fn evolve(context: &Context, arguments: Evolve) -> Result<Exit, Failure> {
    // The search takes long, and what it found would be lost.
    check_output(arguments.to.output.as_deref())?;
    let host = context.host(HostArguments { starts_programs: true, without_runs: true, ..arguments.with.into() })?;
    let agent = context.load(|| host.load(&arguments.path))?;
    context.screen.worked();
    let runtime = threads::start()?;
    let seed = arguments.seed.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
    });
    let settings = EvolveSettings { seed, evaluations: usize::try_from(arguments.evaluations).unwrap_or(usize::MAX) };
    let cancel = CancellationToken::new();
    let screen = context.screen.clone();
    let mut tell = |generation: hotcell_runtime::Generation| {
        let hotcell_runtime::Generation { number, best, evaluated } = generation;
        screen.line(&format!("generation {number}: best fitness {best:.3}, {evaluated} settings scored"));
    };
    let work = host.evolve(&agent, &settings, &cancel, &mut tell);
    let evolved = runtime.block_on(stop::on_signal(context.screen.clone(), cancel.clone(), work));
    runtime.shutdown_background();
    let evolved = match evolved {
        Ok(evolved) => evolved,
        Err(EvolveError::Stopped) => return Ok(Exit::Interrupted),
        Err(EvolveError::Host(error)) => return Err(error.into()),
        Err(error) => return Err(Failure::refused(error.to_string())),
    };
    match evolved.agents.is_empty() {
        true => context
            .screen
            .line(&format!("no settings were better than the current ones ({:.3})", evolved.fitness_before)),
        false => {
            context.screen.line(&format!("fitness {:.3}, and {:.3} as it is", evolved.fitness, evolved.fitness_before));
        }
    }
    let text = serde_json::to_string_pretty(&evolved).map_err(|error| Failure::failed(error.to_string()))?;
    put_data(&text, arguments.to.output.as_deref())?;
    Ok(Exit::Done)
}
