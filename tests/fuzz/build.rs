//! Builds the guest that calls the host as it is told.

fn main() -> std::process::ExitCode {
    hotcell_guest_build::carry("hotcell-fuzz-guest", "HOTCELL_FUZZ_GUEST")
}
