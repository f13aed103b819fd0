//! Has cargo look again at what the crate carries: new files, too.

fn main() {
    for folder in [
        "wit",
        "sdk/templates",
        "sdk/c/include",
        "sdk/javascript/hotcell-plugin",
        "sdk/python/hotcell_plugin",
        "sdk/wasi",
    ] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
    for package in ["hotcell-plugin", "hotcell-plugin-macros"] {
        println!("cargo::rerun-if-changed=../../sdk/rust/{package}/Cargo.toml");
        println!("cargo::rerun-if-changed=../../sdk/rust/{package}/src");
    }
}
