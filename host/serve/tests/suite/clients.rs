//! Clients of others that drive a server.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::net::TcpSocket;

/// A port that nobody else is given as long as this is there. A program that takes it over (`SO_REUSEADDR`) may listen there; until one
/// does, connections are refused.
pub(crate) struct Port(TcpSocket);

impl Port {
    pub(crate) fn reserve() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("it may be taken over");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        Port(socket)
    }

    pub(crate) fn number(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }
}

/// Runs a script of `clients` in Python with the address of a server and more, where `clients/install.sh` has installed what it needs.
pub(crate) async fn drive(script: &str, arguments: &[&str]) {
    let python = installed("bin/python");
    run(Command::new(&python), python, script, arguments).await;
}

/// The same in JavaScript, with the packages in a folder beside it.
pub(crate) async fn drive_node(script: &str, modules: &str, arguments: &[&str]) {
    let modules = installed(modules);
    let mut all = vec![modules.to_str().expect("a path")];
    all.extend(arguments);
    run(Command::new("node"), modules.clone(), script, &all).await;
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn installed(path: &str) -> PathBuf {
    here().join("../../target/serve-clients").join(path)
}

#[allow(clippy::print_stderr)] // says why nothing was tested
async fn run(mut command: Command, needed: PathBuf, script: &str, arguments: &[&str]) {
    if !needed.exists() {
        eprintln!("the clients of others are not installed: run host/serve/tests/clients/install.sh");
        return;
    }
    command.arg(here().join("tests/clients").join(script)).args(arguments);
    let ended = tokio::task::spawn_blocking(move || command.output());
    let ended = ended.await.expect("no panic").expect("it runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said == "driven\n", "{said}{}", String::from_utf8_lossy(&ended.stderr));
}
