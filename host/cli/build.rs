//! The command is shipped without its symbol table, a tenth of its size. Not by the profile's `strip`, which would make
//! cargo compile everything that the build script of `hotcell-interpreters` needs a second time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HOTCELL_SYMBOLS");
    let keep = std::env::var_os("HOTCELL_SYMBOLS").is_some();
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && !keep {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
