//! `hotcell plugin attack`, with the guests that hotcell brings and with those of an operator.

use crate::desk::Desk;

/// What an attack may use here, so that all of them end soon.
const LIMITS: &str = "[ceiling]\nfuel = 1500000\nwall_clock_ms = 5000\n";

/// A guest that does one thing.
const TRAPS: &str = r#"(module (memory (export "memory") 1) (func (export "_start") unreachable))"#;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("hotcell.toml", LIMITS);
    desk
}

/// What a command said, with one width for every column.
fn told(desk: &Desk, arguments: &[&str]) -> String {
    let blanks = regex::Regex::new(" {2,}").unwrap();
    blanks.replace_all(&desk.told(arguments), "  ").into_owned()
}

#[test]
fn the_guests_that_hotcell_brings_are_stopped_by_what_they_expect() {
    insta::assert_snapshot!(told(&desk(), &["plugin", "attack"]));
}

#[test]
fn a_guest_that_is_not_stopped_as_expected_fails_the_command() {
    let desk = desk();
    desk.write("hostile/traps.wat", &format!(";; traps\n;; expect: trap\n{TRAPS}"));
    desk.write("hostile/wrong.wat", &format!(";; traps\n;; expect: deadline\n{TRAPS}"));
    desk.write("hostile/wins.wat", &format!(";; wants nothing, and gets it\n{}", TRAPS.replace("unreachable", "")));
    desk.write("hostile/silent.wat", TRAPS);
    desk.write("hostile/text.wasm", "no WebAssembly");
    desk.write("hostile/notes.txt", "this is no guest");
    insta::assert_snapshot!(told(&desk, &["plugin", "attack", "hostile"]));
}

#[test]
fn a_neighbour_that_cannot_go_on_fails_the_command() {
    let desk = Desk::new();
    desk.write("hotcell.toml", "[ceiling]\nfuel = 10\n");
    desk.write("hostile/traps.wat", TRAPS);
    let told = told(&desk, &["plugin", "attack", "hostile"]);
    assert!(
        told.starts_with("exit code: 1") && told.contains("traps: its neighbour did not go on: out-of-fuel"),
        "{told}"
    );
}

#[test]
fn a_folder_that_holds_no_attacks_is_refused() {
    let desk = desk();
    desk.write("empty/notes.txt", "this is no guest");
    desk.write("odd/x.wat", ";; expect: mercy\n(module)");
    desk.write("broken/x.wat", "(modul)");
    for (folder, expected) in [
        ("no-such-folder", "cannot use `no-such-folder`"),
        ("empty", "there is no `.wat` or `.wasm` file in that folder"),
        ("odd", "it expects `mercy`, which stops nothing"),
        ("broken", "it is not WebAssembly text"),
    ] {
        let told = desk.told(&["plugin", "attack", folder]);
        assert!(told.starts_with("exit code: 2") && told.contains(expected), "{told}");
    }
}
