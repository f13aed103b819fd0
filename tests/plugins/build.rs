//! Builds the plugin that does what it is told.

fn main() -> std::process::ExitCode {
    hotcell_guest_build::carry("hotcell-probe", "HOTCELL_PROBE")
}
