//! Builds what is measured: a script, a tool, and a neighbour that loops and floods.

fn main() -> std::process::ExitCode {
    hotcell_guest_build::carry_all(&[
        ("hotcell-bench-script", "HOTCELL_BENCH_SCRIPT"),
        ("hotcell-bench-tool", "HOTCELL_BENCH_TOOL"),
        ("hotcell-probe", "HOTCELL_PROBE"),
    ])
}
