//! The module is shipped without its symbol table, as the command is (`host/cli/build.rs` says why not by the profile).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOTCELL_SYMBOLS");
    let keep = std::env::var_os("HOTCELL_SYMBOLS").is_some();
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && !keep {
        println!("cargo::rustc-link-arg-cdylib=-Wl,--strip-all");
    }
}
