//! What agents and their clients keep on the server between runs: JSON objects under a key in a namespace.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use crate::store::{Store, StoreError, microseconds, time};
use crate::view::{Object, object};

/// Items that the server keeps.
pub(crate) const MOST_ITEMS: i64 = 100_000;
/// Bytes of all their values.
pub(crate) const MOST_BYTES: i64 = 256 << 20;
/// Items that are looked at before others may use the file. (The table `kept` says how many there are, and how many bytes.)
const PAGE: usize = 500;
/// Bytes of their values, which take many times as much memory when they are looked at.
const PAGE_BYTES: usize = 1 << 20;

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// Its namespace: labels with dots in between
    pub(crate) namespace: String,
    pub(crate) key: String,
    pub(crate) value: Object,
    pub(crate) created: SystemTime,
    pub(crate) updated: SystemTime,
}

/// Which items are wanted.
pub(crate) struct Wanted {
    /// How their namespace begins; empty for all
    pub(crate) prefix: String,
    /// What members of their value are
    pub(crate) filter: Object,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

impl Store {
    /// Keeps an item in the place of the one that is there. False if there is no room for it.
    pub(crate) fn put_item(&self, namespace: &str, key: &str, value: &Object) -> Result<bool, StoreError> {
        let text = Value::Object(value.clone()).to_string();
        let now = microseconds(SystemTime::now());
        self.with(|connection| {
            let before = size(connection, namespace, key)?;
            let (items, bytes) = connection.query_row("SELECT items, bytes FROM kept", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })?;
            let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
            let items = items + i64::from(before.is_none());
            let bytes = (bytes + length - before.unwrap_or(0)).max(0);
            let grows = before.is_none_or(|before| length > before);
            if grows && (items > MOST_ITEMS || bytes > MOST_BYTES) {
                return Ok(false);
            }
            connection
                .prepare_cached(
                    "INSERT INTO items (namespace, key, value, created, updated) VALUES (?1, ?2, ?3, ?4, ?4)
                     ON CONFLICT (namespace, key) DO UPDATE SET value = ?3, updated = ?4",
                )?
                .execute(params![namespace, key, text, now])?;
            connection.execute("UPDATE kept SET items = ?1, bytes = ?2", params![items, bytes])?;
            Ok(true)
        })
    }

    /// Forgets an item, if it is there.
    pub(crate) fn delete_item(&self, namespace: &str, key: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            let Some(bytes) = size(connection, namespace, key)? else { return Ok(()) };
            connection.execute("DELETE FROM items WHERE namespace = ?1 AND key = ?2", [namespace, key])?;
            connection.execute("UPDATE kept SET items = items - 1, bytes = bytes - ?1", [bytes])?;
            Ok(())
        })
    }

    /// The item of a key.
    pub(crate) fn item(&self, namespace: &str, key: &str) -> Result<Option<Item>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {ITEM} FROM items WHERE namespace = ?1 AND key = ?2"))?
                .query_row([namespace, key], item)
                .optional()
        })
    }

    /// Hands items over, in the order of their namespaces and keys, until they are not taken any more.
    pub(crate) fn items<E: From<StoreError>>(
        &self,
        wanted: &Wanted,
        mut take: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let fits = |item: &Item| wanted.filter.iter().all(|(name, value)| item.value.get(name) == Some(value));
        let (mut found, mut left_out) = (0, 0);
        let (mut namespace, mut key) = (String::new(), String::new());
        while found < wanted.limit {
            let page = self.page_of_items(&wanted.prefix, &namespace, &key)?;
            let Some(last) = page.last() else { break };
            (namespace, key) = (last.namespace.clone(), last.key.clone());
            for item in page.into_iter().filter(fits) {
                if left_out < wanted.offset {
                    left_out += 1;
                } else if found < wanted.limit {
                    found += 1;
                    take(item)?;
                }
            }
        }
        Ok(())
    }

    /// The items after the one of this namespace and key whose namespace begins like this; some of them, if there are any.
    fn page_of_items(&self, prefix: &str, namespace: &str, key: &str) -> Result<Vec<Item>, StoreError> {
        self.scan(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM} FROM items WHERE (namespace, key) > (?1, ?2)
                     AND (?3 = '' OR namespace = ?3 OR (namespace >= ?3 || '.' AND namespace < ?3 || '/'))
                 ORDER BY namespace, key LIMIT ?4"
            ))?;
            let mut rows = statement.query(params![namespace, key, prefix, PAGE as i64])?;
            let (mut page, mut bytes) = (Vec::new(), 0);
            while bytes < PAGE_BYTES
                && let Some(row) = rows.next()?
            {
                bytes += row.get_ref(2)?.as_str()?.len();
                page.push(item(row)?);
            }
            Ok(page)
        })
    }

    /// The namespaces that have items and that are `wanted`, each once, in their order.
    pub(crate) fn namespaces(
        &self,
        wanted: impl Fn(&str) -> Option<String>,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.scan(|connection| {
            let mut statement = connection.prepare_cached("SELECT DISTINCT namespace FROM items ORDER BY namespace")?;
            let mut rows = statement.query([])?;
            let mut found: Vec<String> = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                // Names that are cut short may be the same; those follow each other.
                if let Some(name) = wanted(&name).filter(|name| found.last() != Some(name)) {
                    found.push(name);
                }
                if found.len() >= limit + offset {
                    break;
                }
            }
            Ok(found.into_iter().skip(offset).collect())
        })
    }
}

/// The columns that [`item`] reads.
const ITEM: &str = "namespace, key, value, created, updated";

fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let value: String = row.get(2)?;
    Ok(Item {
        namespace: row.get(0)?,
        key: row.get(1)?,
        value: object(serde_json::from_str(&value).unwrap_or_default()),
        created: time(row.get(3)?),
        updated: time(row.get(4)?),
    })
}

/// The bytes of the value that a key has.
fn size(connection: &Connection, namespace: &str, key: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT length(CAST(value AS BLOB)) FROM items WHERE namespace = ?1 AND key = ?2")?
        .query_row([namespace, key], |row| row.get(0))
        .optional()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_is_room_for_so_much_and_no_more() {
        let store = Store::open(None).expect("opened");
        let value = |length: usize| object(json!({ "v": "x".repeat(length) }));
        assert!(store.put_item("a", "1", &value(100)).expect("kept"));
        let set = |items: i64, bytes: i64| {
            let set =
                |connection: &Connection| connection.execute("UPDATE kept SET items = ?1, bytes = ?2", [items, bytes]);
            store.with(set).expect("set")
        };
        set(MOST_ITEMS, 108);
        assert!(!store.put_item("a", "2", &value(1)).expect("read"), "one item more");
        assert!(store.put_item("a", "1", &value(200)).expect("kept"), "the same item");
        set(1, MOST_BYTES);
        assert!(!store.put_item("a", "1", &value(300)).expect("read"), "more bytes");
        assert!(store.put_item("a", "1", &value(1)).expect("kept"), "fewer bytes always fit");
        store.delete_item("a", "1").expect("gone");
        assert!(store.item("a", "1").expect("read").is_none());
        assert!(store.put_item("a", "2", &value(1)).expect("kept"), "there is room again");
    }

    #[test]
    fn of_long_values_few_are_looked_at_together_and_all_are_found() {
        let store = Store::open(None).expect("opened");
        let value = object(json!({ "v": "x".repeat(256 << 10) }));
        for number in 0..20 {
            assert!(store.put_item("a", &format!("{number:02}"), &value).expect("kept"));
        }
        assert_eq!(store.page_of_items("", "", "").expect("read").len(), 4);
        let wanted = Wanted { prefix: String::new(), filter: Object::new(), limit: 100, offset: 0 };
        let mut keys = Vec::new();
        let mut take = |item: Item| {
            keys.push(item.key);
            Ok::<(), StoreError>(())
        };
        store.items(&wanted, &mut take).expect("read");
        assert_eq!(keys, (0..20).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_namespace_holds_those_below_it_and_none_that_merely_begin_like_it() {
        let store = Store::open(None).expect("opened");
        for (namespace, key) in [("a", "1"), ("a.b", "2"), ("a.b.c", "3"), ("ab", "4"), ("a-b", "5")] {
            store.put_item(namespace, key, &object(json!({ "k": key }))).expect("kept");
        }
        let keys = |prefix: &str, filter: Value, limit, offset| -> Vec<String> {
            let wanted = Wanted { prefix: prefix.to_owned(), filter: object(filter), limit, offset };
            let mut keys = Vec::new();
            let mut take = |item: Item| {
                keys.push(item.key);
                Ok::<(), StoreError>(())
            };
            store.items(&wanted, &mut take).expect("read");
            keys
        };
        assert_eq!(keys("a", json!({}), 9, 0), ["1", "2", "3"]);
        assert_eq!(keys("a.b", json!({}), 9, 0), ["2", "3"]);
        assert_eq!(keys("a", json!({}), 1, 1), ["2"]);
        assert_eq!(keys("", json!({ "k": "4" }), 9, 0), ["4"]);
        assert_eq!(keys("nothing", json!({}), 9, 0), [""; 0]);
        let cut = |name: &str| name.starts_with('a').then(|| name.split('.').take(2).collect::<Vec<_>>().join("."));
        assert_eq!(store.namespaces(cut, 9, 0).expect("read"), ["a", "a-b", "a.b", "ab"]);
    }
}
