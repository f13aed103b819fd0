//! The shell cell: bashkit, a bash with coreutils, grep, sed, awk and jq built in, running one script per instance.
//!
//! There are no processes and no operating-system pipes: a program that is not built in does not exist. Files are the
//! shell's own in-memory tree, with what WASI preopens mounted into it. `curl` is this cell's own: the host sends what it
//! is asked to.

mod argc;
mod curl;
mod mounts;
mod shell;

mod bindings {
    use super::Shell;

    wit_bindgen::generate!({
        path: "../../../host/cells/wit/cell.wit",
        world: "interpreter",
    });

    export!(Shell);
}

struct Shell;

impl bindings::Guest for Shell {
    fn init() {
        // A shell is made in a tenth of a millisecond, and would carry the seeds of its hash tables in the image.
    }

    fn run(file_name: String, source: String) -> u8 {
        let code = shell::run(&file_name, &source);
        hotcell_guest_output::flush();
        code
    }
}
