//! Hostile graphs of every language: each is loaded as `hotcell check` would, or run, in a folder that nobody trusts.

use hotcell_harness::{HostileGraph, Stranger};
use hotcell_runtime::Host;

use super::Tried;
use super::ground::Ground;

/// Makes the folder and tries it.
pub(super) async fn attempt(host: &Host, attack: &Stranger<HostileGraph>) -> Tried {
    let work = async {
        let ground = Ground::new(host, &[])?;
        let HostileGraph { files, load, run, input } = &attack.brings;
        for (file, text) in files {
            ground.write(&format!("agent/{file}"), &text.written_out())?;
        }
        let path = format!("agent/{}", load.as_deref().unwrap_or_default());
        let said = if *run { ground.run(&path, input.clone()).await } else { ground.look(&path).await };
        ground.held(said)
    };
    Tried::of(attack, work).await
}
