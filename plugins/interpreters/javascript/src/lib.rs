//! The JavaScript and TypeScript cell: Boa with the part of Node's surface that scripts use.
//!
//! One instance runs one script. [`Guest::init`] builds the engine and evaluates the prelude before the cell is
//! snapshotted, so it must touch nothing of the outside; [`Guest::run`] finds everything ready. Source text, whether
//! JavaScript or TypeScript, is parsed here and nowhere else.

mod event_loop;
mod host;
mod loader;
mod places;
mod session;
mod text;
mod typescript;

use session::Session;

mod bindings {
    use super::JavaScript;

    wit_bindgen::generate!({
        path: "../../../host/cells/wit/cell.wit",
        world: "interpreter",
    });

    export!(JavaScript);
}

struct JavaScript;

impl bindings::Guest for JavaScript {
    fn init() {
        Session::prepare();
    }

    fn run(file_name: String, source: String) -> u8 {
        let code = Session::with_prepared(|session| session.run(&file_name, &source));
        hotcell_guest_output::flush();
        code
    }
}
