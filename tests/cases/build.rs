//! Builds the component with the tools of the cases, so that the runner carries it.

fn main() -> std::process::ExitCode {
    hotcell_guest_build::carry("hotcell-case-tools", "HOTCELL_CASE_TOOLS")
}
