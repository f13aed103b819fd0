//! A server from afar: what the command line asks of its API, and what comes back as what the journal of this machine would hold.

mod client;
mod entries;
mod events;
mod replies;

pub(crate) use self::client::{Client, Events, Refused};
pub(crate) use self::entries::{entry, record};
pub(crate) use self::events::{Teller, account};
pub(crate) use self::replies::{Answered, EntryPage, Run, RunEntry, RunPage};
