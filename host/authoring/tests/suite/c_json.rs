//! The JSON of the C SDK, tested by a C program on this machine.

use std::path::Path;
use std::process::Command;

#[test]
fn the_json_of_the_c_sdk_holds() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/c");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("json");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c17", "-Wall", "-Wextra", "-Werror", "-I"]).arg(sdk.join("include"));
    compiler.arg("-I").arg(sdk.join("tests")).arg(sdk.join("tests/json.c")).arg("-o").arg(&program);
    let compiled = compiler.output().expect("a C compiler, which building hotcell needs anyway");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().expect("the program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
