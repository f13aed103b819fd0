//! What lets a client go on with the run that its call began, and nobody else.

use hotcell_engine::RunInput;
use hotcell_graph::Value;
use hotcell_journal::{RunId, RunRecord};
use serde::{Deserialize, Serialize};

/// The member of a run's origin with the digest of its ticket.
const TICKET: &str = "ticket";

/// Proves that somebody began a run. Of it, the run keeps a digest.
pub(crate) struct Ticket(String);

/// A ticket and its run, as a client has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    run: String,
    ticket: String,
}

impl Ticket {
    /// A new one, for a run that is to begin.
    pub(crate) fn of(given: &mut RunInput) -> Self {
        let secret: [u8; 16] = rand::random();
        let ticket = Ticket(secret.iter().map(|byte| format!("{byte:02x}")).collect());
        given.origin.insert(TICKET, Value::from(ticket.digest().to_hex().as_str()));
        ticket
    }

    /// What a client sent, with the name of its run. None of it is known to be true.
    pub(crate) fn read(text: &str) -> Option<(Self, String)> {
        let shown: Shown = serde_json::from_str(text).ok()?;
        Some((Ticket(shown.ticket), shown.run))
    }

    /// The text by which the client goes on.
    pub(crate) fn for_run(&self, run: &RunId) -> String {
        let shown = Shown { run: run.to_string(), ticket: self.0.clone() };
        // Texts can always be written.
        serde_json::to_string(&shown).unwrap_or_default()
    }

    /// Whether it is that of a run.
    pub(crate) fn fits(&self, run: &RunRecord) -> bool {
        let origin = run.header.given.get("origin").and_then(Value::as_object);
        let kept = origin.and_then(|origin| origin.get(TICKET)).and_then(Value::as_text);
        let kept = kept.and_then(|kept| blake3::Hash::from_hex(kept).ok());
        // Compared in a time that does not say where they differ.
        kept.is_some_and(|kept| kept == self.digest())
    }

    fn digest(&self) -> blake3::Hash {
        blake3::hash(self.0.as_bytes())
    }
}
