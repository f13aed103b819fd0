//! Builds the script that is measured.

fn main() -> std::process::ExitCode {
    hotcell_guest_build::carry("hotcell-bench-script", "HOTCELL_BENCH_SCRIPT")
}
