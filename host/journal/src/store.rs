//! The port: what a store of runs has to do.
//!
//! One [`RunWriter`] at a time owns a run and appends to it. A writer that lost its run (its process was taken for dead, say)
//! is refused by the sequence of the entries. Everybody else sends: an answer or a cancellation reaches the run wherever it is
//! worked on, and is kept for it if nobody does.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hotcell_budget::Bytes;
use thiserror::Error;

use crate::artefact::Revision;
use crate::calls::{RecordedCall, StoredCall};
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::projection::RunStatus;

/// Why the journal did not do what it should.
#[derive(Clone, Debug, Error)]
pub enum JournalError {
    /// The store failed
    #[error("the journal `{path}` cannot be {doing}: {cause}")]
    Store {
        /// The store's path
        path: String,
        /// What was attempted, as a participle
        doing: &'static str,
        /// What the store says
        cause: String,
    },
    /// There is no such run
    #[error("there is no run `{0}`; `hotcell runs list` lists the runs")]
    NoSuchRun(String),
    /// Several runs start with that text
    #[error("`{0}` is the beginning of several runs: {1}")]
    Ambiguous(String, String),
    /// A run of that name was begun before
    #[error("there is a run `{0}` already")]
    Exists(RunId),
    /// Another process runs it
    #[error("run `{0}` is being run by another process")]
    Busy(RunId),
    /// Another run of its thread is being run
    #[error("run `{0}` of the same thread is in progress")]
    ThreadBusy(RunId),
    /// Another run was begun in the thread in the meantime
    #[error("another run has started in this thread")]
    ThreadMoved,
    /// Somebody else goes on with the run
    #[error("run `{0}` was taken over by another process; this one adds nothing to it any more")]
    Fenced(RunId),
    /// The run has written more than a run may
    #[error(
        "the run has written more than {} to its journal, and may not write more (`journal_bytes` under `[run]` in `hotcell.toml`)",
        Bytes(*.most)
    )]
    Full {
        /// Bytes that a run may write
        most: u64,
    },
    /// Somebody ended it for good
    #[error("run `{0}` is cancelled; nothing is added to it any more")]
    Cancelled(RunId),
    /// It has ended, and takes no more answers and no cancellation
    #[error("run `{run}` is {status}")]
    Ended {
        /// The run
        run: RunId,
        /// How it ended
        status: RunStatus,
    },
    /// The question has an answer, or was never asked
    #[error("question `{question}` of run `{run}` {why}")]
    NotAsked {
        /// The run
        run: RunId,
        /// The question's id
        question: String,
        /// What is wrong
        why: &'static str,
    },
    /// The time of the question is over
    #[error("question `{question}` of run `{run}` has expired: its time was over before the answer came")]
    Expired {
        /// The run
        run: RunId,
        /// The question's id
        question: String,
    },
    /// A page of a list was to begin somewhere else than where one ended
    #[error("`{0}` does not mark the start of a page; take the value that came with the page before")]
    NoSuchPage(String),
    /// More words are looked for than at once
    #[error("a search has 64 words at most, and this one has {0}")]
    TooManyWords(usize),
    /// It is not among what the store keeps of runs, or not any more
    #[error("`{0}` is not kept in the journal")]
    NotKept(String),
    /// What is kept is not what was put there
    #[error("`{0}` is damaged in the journal: the file was changed or damaged after it was written")]
    DamagedArtefact(String),
    /// Something was sent to the run that has to be received before it can rest
    #[error("run `{0}` has messages that were not received")]
    Unread(RunId),
    /// An entry is not what this version writes, or not what was written
    #[error(
        "run `{run}` is damaged at entry {sequence}: {cause}; `hotcell runs show {run}` shows what comes before it"
    )]
    Damaged {
        /// The run
        run: RunId,
        /// The entry, from 1
        sequence: u64,
        /// What is wrong with it
        cause: String,
    },
}

/// A run as an index knows it, without what it was given.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Its name
    pub id: RunId,
    /// The graph's name
    pub graph: String,
    /// Where the graph was loaded from
    pub source: String,
    /// The thread that it belongs to
    pub thread: Option<String>,
    /// How it stands
    pub status: RunStatus,
    /// When it was started
    pub created: SystemTime,
    /// When its status last changed
    pub updated: SystemTime,
    /// The beginning of the result or the error that it ended with
    pub outcome: Option<String>,
}

/// A run with what it was started with.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Its name
    pub id: RunId,
    /// What it was started with
    pub header: RunHeader,
    /// The revision of what it was loaded from with which it goes on, if that is kept
    pub revision: Option<String>,
    /// How it stands
    pub status: RunStatus,
    /// When it was started
    pub created: SystemTime,
    /// When its status last changed
    pub updated: SystemTime,
    /// The result or the error it ended with
    pub outcome: Option<String>,
}

impl RunRecord {
    /// The thread that it belongs to.
    pub fn thread(&self) -> Option<&str> {
        self.header.thread()
    }
}

/// What is read of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The entries in the order in which they were committed, those that were sent and not yet received last
    pub entries: Vec<Entry>,
    /// Why there are no more of them, if something is wrong with the rest
    pub damage: Option<JournalError>,
    /// How long processes have worked on the run, up to the last entry
    pub worked: Duration,
}

impl History {
    /// The entries, if all of them are whole.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] names the first that is not.
    pub fn whole(self) -> Result<Vec<Entry>, JournalError> {
        match self.damage {
            Some(damage) => Err(damage),
            None => Ok(self.entries),
        }
    }
}

/// An entry with its place in the sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedEntry {
    /// Which entry of the run it is, from 1
    pub number: u64,
    /// When it was written
    pub at: SystemTime,
    /// The entry
    pub entry: Entry,
}

/// A part of a run's entries.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPage {
    /// The entries, in their order
    pub entries: Vec<NumberedEntry>,
    /// How the run stood when they were read
    pub status: RunStatus,
    /// Whether nothing came after them: the run stands so after the last of them. Otherwise there may be more
    pub is_last: bool,
}

/// Which runs are wanted. What is not set is not looked at.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// The run of this name
    pub run: Option<RunId>,
    /// Runs that stand in one of these ways; empty means all
    pub statuses: Vec<RunStatus>,
    /// Runs of the graph of this name
    pub graph: Option<String>,
    /// Runs of the agents that were loaded from there; none means of all
    pub sources: Option<Vec<String>>,
    /// Runs of this thread
    pub thread: Option<String>,
    /// Runs that began at this time or later
    pub since: Option<SystemTime>,
    /// Runs that began before this time
    pub before: Option<SystemTime>,
    /// Runs with all of these words, or beginnings of words, in their input, their result or the name of their graph
    pub text: Option<String>,
    /// Where the page begins: [`RunPage::next`] of the page before
    pub after: Option<String>,
    /// How many at most
    pub limit: usize,
}

/// Words that are looked for at once. What it takes grows faster than their number.
const MOST_WORDS: usize = 64;

impl RunQuery {
    /// The words that are looked for; none if no text is.
    pub(crate) fn words(&self) -> Result<Option<Vec<&str>>, JournalError> {
        let Some(text) = &self.text else { return Ok(None) };
        let words: Vec<&str> = words(text).collect();
        match words.len() {
            ..=MOST_WORDS => Ok(Some(words)),
            many => Err(JournalError::TooManyWords(many)),
        }
    }
}

/// The words of a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// A page of runs, the newest first.
#[derive(Clone, Debug, Default)]
pub struct RunPage {
    /// The runs
    pub runs: Vec<RunSummary>,
    /// Where the next page begins, if there is more
    pub next: Option<String>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Runs
    pub runs: u64,
    /// Bytes that were given back
    pub bytes: u64,
}

/// How much a store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// How many runs stand in each way
    pub runs: Vec<(RunStatus, u64)>,
    /// Questions, and callbacks that are waited for, without an answer, of runs that rest
    pub open_questions: u64,
    /// The bytes that it takes; none if it is in no file
    pub bytes: Option<u64>,
}

/// A run that was taken, with what is known of it.
pub struct Taken {
    /// Writes to it
    pub writer: Box<dyn RunWriter>,
    /// What was committed before
    pub history: History,
}

/// A store of runs.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// What is wrong with all of it, if it is damaged so that nothing can be written to it and only some of it be read.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Keeps a revision until no run needs it. What is kept already is not written again.
    async fn keep(&self, revision: &Revision) -> Result<(), JournalError>;

    /// The bytes of an artefact of a revision: [`JournalError::NotKept`] or [`JournalError::DamagedArtefact`] if they are not
    /// there.
    async fn artefact(&self, digest: &str) -> Result<Vec<u8>, JournalError>;

    /// Starts a run: its first entry is [`Fact::Started`].
    ///
    /// Its revision has to be kept if the header says so: [`JournalError::NotKept`] says that it is not, and nothing is begun.
    ///
    /// It has the name that the header says (`given.id`): [`JournalError::Exists`] says that another one has it. Otherwise it gets a new
    /// one.
    ///
    /// In a thread, `follows` has to be the run that is last in it: [`JournalError::ThreadMoved`] says that another one is,
    /// [`JournalError::ThreadBusy`] that one of its runs is being worked on.
    async fn create(&self, header: &RunHeader, follows: Option<&RunId>) -> Result<Box<dyn RunWriter>, JournalError>;

    /// Starts a run whose entries begin with those of another one, each with when it was written, and `then`. All of it is
    /// committed, or nothing is. Of the copied ones, [`Fact::Started`] is left out: what the run was started with is `header`.
    ///
    /// If nothing follows, nobody has the run afterwards: it stands as its last entry says. Otherwise the last entry has to say that
    /// it is worked on ([`Fact::Forked`], say), and whoever called this owns it.
    ///
    /// Errors are those of [`RunStore::create`] and [`RunWriter::append`].
    async fn fork(
        &self,
        header: &RunHeader,
        copied: Vec<NumberedEntry>,
        then: Vec<Entry>,
    ) -> Result<Box<dyn RunWriter>, JournalError>;

    /// Takes a run to go on with it, and appends `fact` ([`Fact::Resumed`] or [`Fact::Retried`]), which is in the history that
    /// is given back.
    ///
    /// [`JournalError::Busy`] if somebody works on it, [`JournalError::Ended`] or [`JournalError::Cancelled`] if nothing can
    /// come after what it ended with.
    async fn take(&self, run: &RunId, fact: Fact) -> Result<Taken, JournalError>;

    /// Sends an answer ([`Fact::Answered`]), a cancellation ([`Fact::Cancelled`]) or the wish that it pauses ([`Fact::PauseAsked`]) to a
    /// run. It is committed when this returns: the run receives it if it is being worked on, and finds it when it is taken
    /// otherwise. A run that nobody works on is paused at once ([`Fact::Paused`]).
    ///
    /// Only the first answer to a question is taken: [`JournalError::NotAsked`] is for all others, [`JournalError::Expired`] for
    /// those to a question whose time was found to be over.
    async fn send(&self, run: &RunId, entry: Entry) -> Result<(), JournalError>;

    /// Everything that was committed of a run, what was sent to it included.
    async fn history(&self, run: &RunId) -> Result<History, JournalError>;

    /// What was sent to a run and not received yet.
    async fn unread(&self, run: &RunId) -> Result<Vec<Entry>, JournalError>;

    /// Entries of a run, `limit` at most: those whose number is higher than `after`. Of long entries there are fewer, so that no page
    /// takes much more room than one of them; there are none only where there are no more. What was sent and not received
    /// ([`RunStore::unread`]) is not among them; it will be.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] if one of them is not what was written.
    async fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError>;

    /// The number of the last entry of a run, which is how many it has. What was sent and not received is not counted.
    async fn last_entry(&self, run: &RunId) -> Result<u64, JournalError>;

    /// Returns when a run has an entry whose number is higher than `after`, if it is written by this process. Entries that another
    /// process writes are not noticed; [`RunStore::moved_on`] notices them.
    async fn grown(&self, run: &RunId, after: u64) -> Result<(), JournalError>;

    /// Returns when a run has an entry whose number is higher than `after`, or does not work any more: it rests, has ended or was
    /// cancelled, or whoever worked on it is gone. It may be another process that sees to that; of this one, [`RunStore::grown`] is
    /// cheaper to wait for.
    async fn moved_on(&self, run: &RunId, after: u64) -> Result<(), JournalError>;

    /// Recordings of calls of a run, `limit` at most, in the order in which the calls ended: those whose number is higher than
    /// `after`.
    async fn calls(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<StoredCall>, JournalError>;

    /// The run whose name is, or begins with, this text.
    async fn find(&self, name: &str) -> Result<RunRecord, JournalError>;

    /// Runs, the newest first.
    async fn list(&self, query: &RunQuery) -> Result<RunPage, JournalError>;

    /// The latest run of a source in a thread, if there is one.
    async fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError>;

    /// Runs that rest, and to which something was sent since. Those that are paused go on when somebody says so, not by themselves.
    async fn with_messages(&self) -> Result<Vec<RunId>, JournalError>;

    /// Runs that nobody works on, that are not paused, and one of whose timers ([`Fact::TimerSet`]) or questions ([`Question::expires`]) is due:
    /// whoever serves runs goes on with them.
    ///
    /// [`Question::expires`]: crate::Question::expires
    async fn due(&self, now: SystemTime) -> Result<Vec<RunId>, JournalError>;

    /// When the next timer or question of all runs is due after this time, of those that have not fired and are not answered; runs
    /// that are being worked on included, which see to their own. It is found without reading a run.
    async fn next_due(&self, after: SystemTime) -> Result<Option<SystemTime>, JournalError>;

    /// How much there is. It is found without reading the entries of runs.
    async fn census(&self) -> Result<Census, JournalError>;

    /// Returns when nobody works on a run, or whoever did is gone.
    async fn released(&self, run: &RunId) -> Result<(), JournalError>;

    /// Removes runs that have ended with the revisions that no other run needs, and gives their space back. Only the filters of `query` are looked at; a run that another
    /// one needs to know its state stays.
    async fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError>;
}

/// Writes to a run that it owns. Dropping it gives the run free.
#[async_trait]
pub trait RunWriter: Send + Sync {
    /// The run.
    fn run(&self) -> &RunId;

    /// Appends entries, all or none, after everything that this writer appended before. They may not be safe yet when this
    /// returns; [`RunWriter::settled`] waits for that.
    ///
    /// An entry after which the run rests ([`Fact::Waiting`], [`Fact::Ended`]) is refused with [`JournalError::Unread`] while
    /// there are messages, and gives the run free. Of answers to a question and its expiry ([`Fact::Expired`]) only the first
    /// is taken. After an error nothing can be appended any more, [`JournalError::Unread`], [`JournalError::NotAsked`],
    /// [`JournalError::Expired`] and [`JournalError::NotKept`] (of the revision of [`Fact::Revised`]) apart.
    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError>;

    /// Appends entries as [`RunWriter::append`] does. Nothing outside of the run depends on them yet, so a store may put off
    /// committing them until more is appended, [`RunWriter::catch_up`] or [`RunWriter::settled`] is called, or the writer is dropped.
    /// Whoever calls this sees to it that one of them is called before the run waits for anything.
    async fn append_later(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.append(entries).await
    }

    /// Has what was put off committed, without waiting until it is safe.
    ///
    /// # Errors
    /// The error after which nothing can be appended any more, if it is found here.
    fn catch_up(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Takes the recording of a call. It is committed with the next entries, or when the writer is dropped; nothing is wrong
    /// with a run whose recordings are lost.
    fn record(&self, call: RecordedCall);

    /// Returns when everything that was appended before the call is safe. Whoever lets something out of the process that follows from it
    /// waits for this.
    async fn settled(&self) -> Result<(), JournalError>;

    /// Waits for messages and appends them to the run.
    async fn receive(&self) -> Result<Vec<Entry>, JournalError>;

    /// When the run was begun and when it came to rest, as [`RunStore::find`] says it ([`RunRecord::created`],
    /// [`RunRecord::updated`]). None if that would have to be read: if the run was not begun by this writer, or does not rest by what
    /// this writer appended.
    fn times(&self) -> Option<(SystemTime, SystemTime)> {
        None
    }
}
