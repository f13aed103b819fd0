//! Whose a store is, what is in it, and what becomes of files of the layout before.

use std::path::PathBuf;

use super::*;

struct Disk(tempfile::TempDir);

impl Disk {
    fn new(folders: &[&str]) -> Self {
        let disk = Disk(tempfile::tempdir().unwrap());
        for folder in folders {
            std::fs::create_dir_all(disk.path(folder)).unwrap();
        }
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn stores(&self) -> Stores {
        Stores::open(Some(&self.path("stores.db"))).unwrap()
    }

    fn owner(&self, project: &str) -> Owner {
        Owner::of_project(&self.path(project), "notes").unwrap()
    }

    /// A file as hotcell wrote it when stores belonged to names.
    fn by_names(&self, plugins: &[&str]) {
        let connection = Connection::open(self.path("stores.db")).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS entries (
                     owner TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (owner, key)
                 ) WITHOUT ROWID;",
            )
            .unwrap();
        for plugin in plugins {
            let sql = "INSERT INTO entries (owner, key, value) VALUES (?1, 'k', ?2)";
            connection.execute(sql, params![plugin, format!("of {plugin}").as_bytes()]).unwrap();
        }
    }
}

fn value(stores: &Stores, owner: &Owner) -> Option<String> {
    stores.of(owner.clone()).get("k").unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn put(stores: &Stores, owner: &Owner, value: &str) {
    stores.of(owner.clone()).set("k", value.as_bytes()).unwrap();
}

#[test]
fn plugins_see_only_their_own_and_what_is_set_is_kept() {
    let disk = Disk::new(&["p"]);
    let stores = disk.stores();
    let owner = |plugin: &str| Owner::of_project(&disk.path("p"), plugin).unwrap();
    let (a, b) = (stores.of(owner("a")), stores.of(owner("b")));
    assert_eq!((a.get("x/1").unwrap(), a.keys("", 9).unwrap()), (None, vec![]));
    a.delete("x/1").unwrap();
    a.set("x/1", b"one").unwrap();
    a.set("x/2", b"\xff").unwrap();
    a.set("y", b"").unwrap();
    b.set("x/1", b"other").unwrap();
    assert_eq!(a.keys("x/", 10).unwrap(), ["x/1", "x/2"]);
    assert_eq!(a.keys("", 2).unwrap(), ["x/1", "x/2"]);
    a.delete("x/1").unwrap();
    drop((a, b, stores));
    let stores = disk.stores();
    assert_eq!(stores.of(owner("a")).get("x/1").unwrap(), None);
    assert_eq!(stores.of(owner("a")).get("x/2").unwrap(), Some(vec![0xff]));
    assert_eq!(stores.of(owner("b")).get("x/1").unwrap(), Some(b"other".to_vec()));
}

#[test]
fn plugins_of_one_name_from_different_places_have_different_stores() {
    let disk = Disk::new(&["one", "two", "shared", "user"]);
    let stores = disk.stores();
    let beside = |project: &str| Owner::beside_project(&disk.path(project), &disk.path("shared"), "notes").unwrap();
    let owners = [
        disk.owner("one"),
        disk.owner("two"),
        beside("one"),
        beside("two"),
        Owner::of_user(&disk.path("user"), "notes").unwrap(),
        Owner::of_user(&disk.path("shared"), "notes").unwrap(),
        // Two folders of one project that hold the same are two places.
        Owner::beside_project(&disk.path("one"), &disk.path("one"), "notes").unwrap(),
    ];
    for (number, owner) in owners.iter().enumerate() {
        assert_eq!(value(&stores, owner), None, "{owner:?}");
        assert_eq!(stores.former(owner).unwrap(), [], "{owner:?}");
        put(&stores, owner, &number.to_string());
    }
    for (number, owner) in owners.iter().enumerate() {
        assert_eq!(value(&stores, owner), Some(number.to_string()), "{owner:?}");
        stores.of(owner.clone()).delete("other").unwrap();
        assert_eq!(stores.of(owner.clone()).keys("", 9).unwrap(), ["k"]);
    }
    assert_eq!(stores.list().unwrap().stores.len(), owners.len());
}

#[test]
fn a_folder_has_one_store_however_one_comes_there() {
    let disk = Disk::new(&["one/plugins"]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(disk.path("one"), disk.path("link")).unwrap();
    #[cfg(unix)]
    assert_eq!(disk.owner("link"), disk.owner("one"));
    assert_eq!(disk.owner("one/plugins/.."), disk.owner("one"));
    assert!(matches!(Owner::of_project(&disk.path("none"), "notes"), Err(StoresError::Folder { .. })));
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_no_text_has_no_store() {
    use std::os::unix::ffi::OsStrExt as _;
    let disk = Disk::new(&[]);
    let folder = disk.0.path().join(std::ffi::OsStr::from_bytes(b"a\xff"));
    std::fs::create_dir(&folder).unwrap();
    let error = Owner::of_project(&folder, "notes").unwrap_err().to_string();
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn attack_39_40_a_plugin_has_a_share_and_no_more() {
    let disk = Disk::new(&["one", "two"]);
    let stores = Stores::open(None).unwrap();
    let of = |project: &str, plugin: &str| stores.of(Owner::of_project(&disk.path(project), plugin).unwrap());
    let store = of("one", "greedy");
    let full = |result: Result<(), ServiceError>| matches!(result, Err(ServiceError::Unavailable(_)));
    for number in 0..64 {
        let stored = store.set(&format!("{number}"), &vec![0; StoreShare::VALUE]);
        assert_eq!(stored.is_ok(), number < 63, "{number}: {stored:?}");
    }
    assert!(full(store.set("more", &vec![0; StoreShare::VALUE])));
    assert!(store.set("0", b"small").is_ok());
    assert!(of("one", "other").set("x", b"y").is_ok());
    // A share is that of a plugin in a project.
    assert!(of("two", "greedy").set("x", &vec![0; StoreShare::VALUE]).is_ok());
    for (key, value) in [("", 0), (&*"k".repeat(257), 0), ("k", StoreShare::VALUE + 1)] {
        assert!(matches!(store.set(key, &vec![0; value]), Err(ServiceError::InvalidInput(_))));
    }
    let many = of("one", "many");
    for number in 0..StoreShare::KEYS {
        many.set(&number.to_string(), b"").unwrap();
    }
    assert!(full(many.set("one more", b"")));
    assert!(many.set("0", b"x").is_ok());
}

#[test]
fn data_by_names_is_kept_and_nobody_reads_it_until_it_is_adopted() {
    let disk = Disk::new(&["one", "two"]);
    disk.by_names(&["notes", "other"]);
    let stores = disk.stores();
    let (one, two) = (disk.owner("one"), disk.owner("two"));
    let amount = Amount { keys: 1, bytes: 9 };
    for owner in [&one, &two] {
        assert_eq!((value(&stores, owner), stores.of(owner.clone()).keys("", 9).unwrap()), (None, vec![]));
        assert_eq!(stores.former(owner).unwrap(), [Former::Unclaimed(amount)]);
    }
    // Whoever has begun a store of their own is not told again, and loses nothing by adopting.
    put(&stores, &two, "new");
    assert_eq!(stores.former(&two).unwrap(), []);
    assert!(matches!(stores.adopt(&two, false), Err(TakeOverError::Taken(owner, _)) if owner == two));
    assert_eq!(stores.adopt(&one, false).unwrap(), amount);
    assert!(matches!(stores.adopt(&one, true), Err(TakeOverError::Nothing)));
    drop(stores);
    let stores = disk.stores();
    assert_eq!((value(&stores, &one).as_deref(), value(&stores, &two).as_deref()), (Some("of notes"), Some("new")));
    assert_eq!(stores.list().unwrap().unclaimed, [("other".to_owned(), amount)]);
}

#[test]
fn processes_that_find_an_old_file_at_once_bring_it_up_to_date_once() {
    let disk = Disk::new(&["one"]);
    disk.by_names(&["notes"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| disk.stores().former(&disk.owner("one")).unwrap());
        }
    });
    assert_eq!(disk.stores().list().unwrap().unclaimed.len(), 1);
}

#[test]
fn files_that_are_not_of_stores_or_of_a_later_layout_are_left_alone() {
    for (sql, fragment) in [
        ("CREATE TABLE entries (id INTEGER PRIMARY KEY)", "it is not a store file"),
        ("CREATE TABLE runs (id INTEGER)", "a database of something else"),
        ("PRAGMA user_version = 7", "it has layout 7"),
    ] {
        let disk = Disk::new(&[]);
        Connection::open(disk.path("stores.db")).unwrap().execute_batch(sql).unwrap();
        let error = Stores::open(Some(&disk.path("stores.db"))).err().unwrap().to_string();
        assert!(error.contains(fragment) && error.contains("stores.db"), "{error}");
        let connection = Connection::open(disk.path("stores.db")).unwrap();
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert!(tables <= 1, "{fragment}");
    }
}

#[test]
fn a_moved_folder_finds_its_store_again() {
    let disk = Disk::new(&["old/one", "old/two", "tools"]);
    let stores = disk.stores();
    let beside = |project: &str| Owner::beside_project(&disk.path(project), &disk.path("tools"), "notes").unwrap();
    let before = [disk.owner("old/one"), disk.owner("old/two"), beside("old/one")];
    for owner in &before {
        put(&stores, owner, &format!("{owner:?}"));
    }
    std::fs::rename(disk.path("old"), disk.path("new")).unwrap();
    let after = [disk.owner("new/one"), disk.owner("new/two"), beside("new/one")];
    let told = stores.former(&after[2]).unwrap();
    let amount = Amount { keys: 1, bytes: 1 + format!("{:?}", before[2]).len() as u64 };
    assert_eq!(told, [Former::Moved { from: disk.path("old/one"), to: disk.path("new/one"), amount }]);
    // Of two that could have been here, both are named.
    assert_eq!(stores.former(&after[0]).unwrap().len(), 2);
    assert_eq!(stores.below(&disk.path("old")).unwrap().len(), 3);
    assert_eq!(stores.relocate(&disk.path("old"), &disk.path("new"), false).unwrap(), 3);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(value(&stores, after), Some(format!("{before:?}")));
        assert_eq!(stores.former(after).unwrap(), []);
    }
    assert!(matches!(stores.relocate(&disk.path("old"), &disk.path("new"), false), Err(TakeOverError::Nothing)));
}

#[test]
fn what_is_there_already_is_not_overwritten_unless_that_is_meant() {
    let disk = Disk::new(&["a", "a/b"]);
    let stores = disk.stores();
    put(&stores, &disk.owner("a"), "a");
    put(&stores, &disk.owner("a/b"), "b");
    // Only one of the two is in the way of the other: `a` becomes `a/b`, and `a/b` becomes `a/b/b`.
    std::fs::create_dir(disk.path("a/b/b")).unwrap();
    assert_eq!(stores.relocate(&disk.path("a"), &disk.path("a/b"), false).unwrap(), 2);
    assert_eq!(value(&stores, &disk.owner("a/b")).as_deref(), Some("a"));
    assert_eq!(value(&stores, &disk.owner("a/b/b")).as_deref(), Some("b"));
    put(&stores, &disk.owner("a"), "third");
    let refused = stores.relocate(&disk.path("a/b/b"), &disk.path("a"), false);
    assert!(matches!(refused, Err(TakeOverError::Taken(..))));
    assert_eq!(value(&stores, &disk.owner("a/b/b")).as_deref(), Some("b"));
    stores.relocate(&disk.path("a/b/b"), &disk.path("a"), true).unwrap();
    assert_eq!(value(&stores, &disk.owner("a")).as_deref(), Some("b"));
    assert_eq!(stores.list().unwrap().stores.len(), 2);
}

#[test]
fn a_store_of_a_folder_that_is_still_there_is_no_business_of_others() {
    let disk = Disk::new(&["one", "two", "tools", "user"]);
    let stores = disk.stores();
    put(&stores, &disk.owner("one"), "x");
    put(&stores, &Owner::beside_project(&disk.path("two"), &disk.path("tools"), "notes").unwrap(), "y");
    assert_eq!(stores.former(&disk.owner("two")).unwrap(), []);
    // A plugin of another kind of place is another plugin, whatever became of its folder.
    std::fs::remove_dir(disk.path("tools")).unwrap();
    assert_eq!(stores.former(&disk.owner("two")).unwrap(), []);
    assert_eq!(stores.former(&Owner::of_user(&disk.path("user"), "notes").unwrap()).unwrap(), []);
    std::fs::create_dir(disk.path("utensils")).unwrap();
    let renamed = Owner::beside_project(&disk.path("two"), &disk.path("utensils"), "notes").unwrap();
    assert!(
        matches!(&stores.former(&renamed).unwrap()[..], [Former::Moved { to, .. }] if *to == disk.path("utensils"))
    );
}

#[cfg(unix)]
#[test]
fn what_plugins_keep_is_read_by_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("state/hotcell/stores.db");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    drop(Stores::open(Some(&file)).unwrap());
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(Stores::open(Some(&file)).unwrap());
    assert_eq!(mode(&file), 0o600, "one of an earlier version");
}

#[test]
fn what_a_plugin_keeps_is_deleted_alone() {
    let disk = Disk::new(&["one", "two"]);
    let stores = disk.stores();
    let (one, two) = (disk.owner("one"), disk.owner("two"));
    put(&stores, &one, "first");
    put(&stores, &two, "second");
    assert_eq!(stores.amount_of(&one).unwrap().keys, 1);
    assert_eq!(stores.purge(&one).unwrap().keys, 1);
    assert_eq!((value(&stores, &one), value(&stores, &two)), (None, Some("second".to_owned())));
    assert_eq!(stores.list().unwrap().stores.len(), 1);
    assert_eq!(stores.purge(&one).unwrap(), Amount::default(), "there is nothing left");
    put(&stores, &one, "again");
    assert_eq!(value(&stores, &one).as_deref(), Some("again"));
}
