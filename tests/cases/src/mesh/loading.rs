//! Plays a case of the dialect `leafmesh` without steps: whether the file is refused, and what is said of it.

use hotcell_runtime::{Environment, Host, HostOptions};

use crate::case_file::{CaseFile, Status};
use crate::loki::{PlayError, lines, nothing_ran, rejected, with_causes};
use crate::observed::Observed;
use crate::stage::Stage;
use crate::world::World;

/// A port of this machine to which nothing is connected.
const NO_PORT: u16 = 9;

/// Plays a case and tells what was seen.
///
/// # Errors
/// When the host cannot be set up.
pub fn play(case: &CaseFile, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    world.prepare_for_web(NO_PORT)?;
    let environment = case.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let options = HostOptions { environment: Environment::of(environment), ..HostOptions::isolated() };
    let host: Host = stage.host.beside(options).map_err(|error| PlayError::Host(with_causes(&error)))?;
    Ok(match host.load(world.entry()) {
        Err(failure) => rejected(&failure, world),
        Ok(agent) => {
            let warnings: Vec<_> = agent.warnings.iter().collect();
            Observed { warnings: lines(&warnings, world), ..nothing_ran(Status::Completed) }
        }
    })
}
