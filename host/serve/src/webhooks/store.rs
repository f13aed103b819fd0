//! What is to be told, in the server's file.

use std::time::SystemTime;

use rusqlite::{Connection, params};

use crate::store::{Store, StoreError, microseconds};

/// Posts that are kept until they are taken. Beyond that, further ones are lost, and the log says so.
const MOST: i64 = 100_000;
/// How many of them may be for one server: one that takes nothing does not take the room of all others.
const MOST_TO_ONE: i64 = MOST / 2;
/// The server of an address, as far as it tells one from another: addresses are kept as a [`url::Url`] writes them.
const SERVER: &str = "substr(url, 1, instr(substr(url, 9), '/') + 7)";

/// How many posts are begun together: of all, to one server and to one address.
#[derive(Clone, Copy)]
pub(super) struct AtOnce {
    pub(super) all: usize,
    pub(super) to_server: usize,
    pub(super) to_address: usize,
}

/// Whom it is told what becomes of a run.
pub(super) struct Watched {
    pub(super) url: String,
    /// The number of the last entry that it was told of
    pub(super) entry: u64,
}

/// A post that is to be sent.
pub(super) struct Post {
    pub(super) id: String,
    pub(super) url: String,
    /// What its address has in common with others of the same server
    pub(super) server: String,
    pub(super) body: String,
    /// How often it was sent
    pub(super) attempts: u32,
}

impl Store {
    /// Has it told there what becomes of a run after that entry.
    pub(super) fn watch(&self, run: &str, url: &str, after: u64) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("INSERT OR IGNORE INTO watched (run, url, entry) VALUES (?1, ?2, ?3)")?
                .execute(params![run, url, i64::try_from(after).unwrap_or(i64::MAX)])
                .map(drop)
        })
    }

    /// Runs of which something may be to be told.
    pub(super) fn all_watched(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            connection.prepare("SELECT DISTINCT run FROM watched")?.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Whom it is told what becomes of a run.
    pub(super) fn watched(&self, run: &str) -> Result<Vec<Watched>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT url, entry FROM watched WHERE run = ?1")?
                .query_map([run], |row| {
                    Ok(Watched { url: row.get(0)?, entry: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0) })
                })?
                .collect()
        })
    }

    /// Forgets to tell of a run that was not begun.
    pub(super) fn unwatch(&self, run: &str) -> Result<(), StoreError> {
        self.with(|connection| connection.execute("DELETE FROM watched WHERE run = ?1", [run]).map(drop))
    }

    /// Keeps what is to be posted of a run up to an entry, all of it or nothing. False if there is no room for it.
    pub(super) fn to_post(
        &self,
        run: &str,
        url: &str,
        bodies: &[String],
        (up_to, is_over): (u64, bool),
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        self.with(|connection| {
            let waiting: i64 = connection.query_row("SELECT count(*) FROM posts", [], |row| row.get(0))?;
            // Only where it may be too many they are counted one by one.
            let has_room = waiting < MOST_TO_ONE || (waiting < MOST && waiting_for(connection, url)? < MOST_TO_ONE);
            for body in bodies.iter().filter(|_| has_room) {
                let id: u128 = rand::random();
                connection
                    .prepare_cached(
                        "INSERT INTO posts (id, run, url, body, attempts, due) VALUES (?1, ?2, ?3, ?4, 0, ?5)",
                    )?
                    .execute(params![format!("msg_{id:032x}"), run, url, body, microseconds(now)])?;
            }
            match is_over {
                true => connection.execute("DELETE FROM watched WHERE run = ?1 AND url = ?2", [run, url])?,
                false => connection.execute(
                    "UPDATE watched SET entry = ?3 WHERE run = ?1 AND url = ?2",
                    params![run, url, i64::try_from(up_to).unwrap_or(i64::MAX)],
                )?,
            };
            Ok(has_room || bodies.is_empty())
        })
    }

    /// Posts whose time has come, the oldest first, and so many at most to one address and to one server: what is not taken there hides no
    /// others.
    pub(super) fn due_posts(&self, now: SystemTime, most: AtOnce) -> Result<Vec<Post>, StoreError> {
        let AtOnce { all, to_server, to_address } = most;
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT id, url, {SERVER}, body, attempts FROM posts WHERE number IN (
                         SELECT number FROM (
                             SELECT number, row_number() OVER (PARTITION BY {SERVER} ORDER BY due, number) AS of_server FROM (
                                 SELECT number, url, due, row_number() OVER (PARTITION BY url ORDER BY due, number) AS place
                                 FROM posts WHERE due <= ?1
                             ) WHERE place <= ?4
                         ) WHERE of_server <= ?3
                     ) ORDER BY due, number LIMIT ?2"
                ))?
                .query_map(params![microseconds(now), all as i64, to_server as i64, to_address as i64], |row| {
                    let (id, url, server, body) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                    Ok(Post { id, url, server, body, attempts: row.get(4)? })
                })?
                .collect()
        })
    }

    /// When the time of the next post comes after this.
    pub(super) fn next_post(&self, now: SystemTime) -> Result<Option<SystemTime>, StoreError> {
        let next: Option<i64> = self.read(|connection| {
            connection
                .prepare_cached("SELECT MIN(due) FROM posts WHERE due > ?1")?
                .query_row([microseconds(now)], |row| row.get(0))
        })?;
        Ok(next.map(crate::store::time))
    }

    /// Forgets a post that was taken, or given up.
    pub(super) fn posted(&self, id: &str) -> Result<(), StoreError> {
        self.with(|connection| connection.prepare_cached("DELETE FROM posts WHERE id = ?1")?.execute([id]).map(drop))
    }

    /// Has a post sent again at that time.
    pub(super) fn postpone(&self, id: &str, at: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE posts SET attempts = attempts + 1, due = ?2 WHERE id = ?1")?
                .execute(params![id, microseconds(at)])
                .map(drop)
        })
    }
}

/// How many posts wait to be taken by the server of an address.
fn waiting_for(connection: &Connection, url: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(&format!(
            "SELECT count(*) FROM posts, (SELECT {SERVER} AS server FROM (SELECT ?1 AS url)) WHERE {SERVER} = server"
        ))?
        .query_row([url], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn an_address_that_takes_nothing_hides_no_other_one() {
        let store = Store::open(None).expect("a store");
        let bodies: Vec<String> = (0..500).map(|number| number.to_string()).collect();
        assert!(store.to_post("a", "https://slow.example/", &bodies, (1, false), UNIX_EPOCH).expect("kept"));
        assert!(store.to_post("b", "https://quick.example/", &bodies[..2], (1, false), UNIX_EPOCH).expect("kept"));
        let most = AtOnce { all: 128, to_server: 64, to_address: 4 };
        let due = store.due_posts(UNIX_EPOCH, most).expect("read");
        let to = |url: &str| due.iter().filter(|post| post.url == url).map(|post| &*post.body).collect::<Vec<_>>();
        assert_eq!(
            (to("https://slow.example/"), to("https://quick.example/")),
            (vec!["0", "1", "2", "3"], vec!["0", "1"])
        );
        assert_eq!(store.due_posts(UNIX_EPOCH, AtOnce { all: 5, ..most }).expect("read").len(), 5);
    }

    #[test]
    fn a_server_with_many_addresses_hides_no_other_one() {
        let store = Store::open(None).expect("a store");
        let body = ["x".to_owned()];
        for number in 0..500 {
            let url = format!("https://slow.example/{number}?of=quick.example");
            assert!(store.to_post("a", &url, &body, (1, false), UNIX_EPOCH).expect("kept"));
        }
        for url in ["https://quick.example/", "https://slow.example:8443/", "http://a/"] {
            assert!(store.to_post("b", url, &body, (1, false), UNIX_EPOCH).expect("kept"));
        }
        let due = store.due_posts(UNIX_EPOCH, AtOnce { all: 128, to_server: 64, to_address: 4 }).expect("read");
        let to = |server: &str| due.iter().filter(|post| post.server == server).count();
        assert_eq!(due.len(), 67);
        assert_eq!(to("https://slow.example"), 64);
        for other in ["https://quick.example", "https://slow.example:8443", "http://a"] {
            assert_eq!(to(other), 1, "{other}");
        }
        let waiting = store.read(|connection| waiting_for(connection, "https://slow.example/other")).expect("read");
        assert_eq!(waiting, 500);
    }
}
