//! Telemetry as the environment of the process asks for it.

use hotcell_telemetry::{OtlpSettings, Telemetry, VariableError};

use crate::exit::Failure;

/// What the variables of the process say is to be sent; it has to be begun within a runtime.
pub(super) fn of_environment() -> Result<Option<Telemetry>, Failure> {
    let settings = OtlpSettings::from_environment(&|name| std::env::var(name).ok()).map_err(refused)?;
    settings.map(|settings| Telemetry::sending(&settings).map_err(refused)).transpose()
}

fn refused(error: VariableError) -> Failure {
    Failure::refused(format!("the variable {error}"))
        .help("it says where telemetry is sent; `OTEL_SDK_DISABLED=true` sends none")
}
