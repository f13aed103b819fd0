//! The tables of the file.

use rusqlite::Connection;

/// The layout this version writes, kept in `user_version`.
pub(super) const LAYOUT: i64 = 6;
/// Says that a SQLite file is a journal: "hotc".
pub(super) const APPLICATION: i64 = 0x686F_7463;

/// Entries hang on the number of their run, not its name: numbers grow, so a new entry goes to the end of the tree.
///
/// `runs` is an index: everything in it follows from the entries. A row of `mail` whose body is null was received; it stays to
/// say that the question has its answer. [`REVISIONS`], [`CALLS`] and [`INDICES`] are made beside it.
pub(super) const SCHEMA: &str = "
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, graph TEXT NOT NULL, source TEXT NOT NULL, thread TEXT,
        follows TEXT, status TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, owner TEXT, outcome TEXT,
        revision INTEGER
    );
    CREATE INDEX runs_by_time ON runs (created, number);
    CREATE INDEX runs_by_status ON runs (status, created, number);
    CREATE INDEX runs_by_graph ON runs (graph, created, number);
    CREATE INDEX runs_by_graph_and_status ON runs (graph, status, created, number);
    CREATE INDEX runs_by_thread ON runs (thread, source, number) WHERE thread IS NOT NULL;
    CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runs_followed ON runs (follows) WHERE follows IS NOT NULL;
    CREATE TABLE entries (
        run INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        at INTEGER NOT NULL, worked INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE mail (
        run INTEGER NOT NULL, subject TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, body TEXT,
        PRIMARY KEY (run, subject)
    ) WITHOUT ROWID;
    CREATE INDEX mail_unread ON mail (run) WHERE body IS NOT NULL;
    CREATE TABLE timers (
        run INTEGER NOT NULL, place TEXT NOT NULL, node TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (run, place, node)
    ) WITHOUT ROWID;
    CREATE INDEX timers_by_time ON timers (at);
    CREATE TABLE waits (run INTEGER NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (run, owner)) WITHOUT ROWID;
    CREATE VIRTUAL TABLE texts USING fts5(text, content = '', contentless_delete = 1, detail = none);
";

/// What runs were loaded from. `former` has the revisions that a run went on with before the one that `runs` has.
///
/// The numbers of revisions are never used again: a run is begun with one that is there.
pub(super) const REVISIONS: &str = "
    CREATE TABLE artefacts (
        number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, packed INTEGER NOT NULL, bytes BLOB
    );
    CREATE TABLE revisions (number INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE);
    CREATE TABLE parts (
        revision INTEGER NOT NULL, artefact INTEGER NOT NULL, PRIMARY KEY (revision, artefact)
    ) WITHOUT ROWID;
    CREATE TABLE former (run INTEGER NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (run, revision)) WITHOUT ROWID;
";

/// Recordings of calls.
pub(super) const CALLS: &str = "
    CREATE TABLE calls (
        run INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
        sum INTEGER NOT NULL, PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
";

/// By what a revision is found to be needed, and an artefact, without looking at all runs and revisions; the runs of one agent, without
/// looking at those of others; and what of a run is about its questions, without looking at all of its entries.
pub(super) const INDICES: &str = "
    CREATE INDEX runs_by_revision ON runs (revision) WHERE revision IS NOT NULL;
    CREATE INDEX former_by_revision ON former (revision);
    CREATE INDEX parts_by_artefact ON parts (artefact);
    CREATE INDEX runs_by_source ON runs (source, created, number);
    CREATE INDEX entries_of_questions ON entries (run, place, kind)
        WHERE kind = 'asked' OR kind = 'answered' OR kind = 'expired';
";

/// Marks the file as a journal of this layout.
pub(super) fn seal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", LAYOUT)
}
