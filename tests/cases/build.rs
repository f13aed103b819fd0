//! Builds the components of the cases, their tools and their plugin, so that the runner carries them.

use std::process::ExitCode;

fn main() -> ExitCode {
    let components = [
        ("hotcell-case-tools", "HOTCELL_CASE_TOOLS"),
        ("hotcell-case-agents", "HOTCELL_CASE_AGENTS"),
        ("hotcell-case-plugin", "HOTCELL_CASE_PLUGIN"),
    ];
    for (package, variable) in components {
        let code = hotcell_guest_build::carry(package, variable);
        if code != ExitCode::SUCCESS {
            return code;
        }
    }
    ExitCode::SUCCESS
}
