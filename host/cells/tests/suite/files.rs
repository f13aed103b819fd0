//! Guests in a directory that was granted to them, and what lies in it: links, pipes, devices, odd names and times.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{
    TestResult, WRITE, WRITE_IMPORT, cells, cells_with, command, grants, load, run_with, state, terms,
};
use hotcell_budget::{Budget, Bytes};
use hotcell_cells::{CellsOptions, Terms};

const IMPORTS: &str = r#"
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_filestat_get" (func $stat (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_filestat_set_times"
        (func $times (param i32 i32 i32 i32 i64 i64 i32) (result i32)))"#;

/// What the guests share: `$open_file` opens the path at an address, `$say` writes a number of two digits.
const PARTS: &str = r#"
    (func $open_file (param $path i32) (param $length i32) (param $oflags i32) (param $rights i64) (result i32)
        (call $open (i32.const 3) (i32.const 1) (local.get $path) (local.get $length) (local.get $oflags)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 32)))
    (func $first_byte (result i32)
        (i32.store (i32.const 40) (i32.const 4096))
        (i32.store (i32.const 44) (i32.const 1))
        (i32.store (i32.const 48) (i32.const 0))
        (drop (call $read (i32.load (i32.const 32)) (i32.const 40) (i32.const 1) (i32.const 48)))
        (if (result i32) (i32.load (i32.const 48))
            (then (i32.load8_u (i32.const 4096))) (else (i32.const 45))))
    (func $say (param $number i32)
        (i32.store8 (i32.const 300) (i32.add (i32.const 48) (i32.div_u (local.get $number) (i32.const 10))))
        (i32.store8 (i32.const 301) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
        (call $write (i32.const 1) (i32.const 300) (i32.const 2)))"#;

const READ: u64 = 2;
const CREATE_AND_WRITE: (u32, u64) = (1, 64);

fn guest(data: &[(u32, &str)], start: &str) -> Vec<u8> {
    let data: String = data.iter().map(|(at, text)| format!("(data (i32.const {at}) \"{text}\")")).collect();
    command(&format!("{WRITE_IMPORT} {IMPORTS}"), &format!("{WRITE} {PARTS} {data} (func $start {start})"))
}

/// Opens `path`, which is `length` bytes long once its escapes are read, and says the number of the error; if there is
/// none, the first byte.
fn opener(path: &str, length: usize, oflags: u32, rights: u64) -> Vec<u8> {
    let start = format!(
        "(local $error i32)
        (local.set $error (call $open_file (i32.const 1024) (i32.const {length}) (i32.const {oflags}) (i64.const {rights})))
        (if (local.get $error) (then (call $say (local.get $error)) (return)))
        (i32.store8 (i32.const 300) (call $first_byte))
        (call $write (i32.const 1) (i32.const 300) (i32.const 1))"
    );
    guest(&[(1024, path)], &start)
}

/// Terms with these directories, each `(on the host, for the guest, access)`.
fn granted(directories: &[(&Path, &str, &str)]) -> Terms {
    let each = |(host, guest, access): &(&Path, &str, &str)| {
        format!("{{ host = '{}', guest = '{guest}', access = '{access}' }}", host.display())
    };
    let list: Vec<String> = directories.iter().map(each).collect();
    Terms { grants: grants(&format!("fs = [{}]", list.join(", "))), ..terms(Budget::default()) }
}

async fn run(bytes: &[u8], terms: Terms) -> String {
    let cells = cells();
    let cell = load(&cells, bytes);
    let report = run_with(&cells, &cell, state([]), terms).await;
    report.result.unwrap_or_else(|error| error.to_string())
}

/// While the guest opens a file three thousand times, somebody puts a link to a secret in its place and takes it away
/// again, and the same with a directory on the way.
#[tokio::test]
async fn attack_34_a_link_that_is_swapped_in_at_the_right_moment_leads_nowhere() -> TestResult {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("real"))?;
    fs::create_dir(folder.path().join("secrets"))?;
    fs::write(folder.path().join("secrets/name"), "outside")?;
    fs::write(data.join("real/name"), "inside")?;
    fs::write(data.join("swapped"), "inside")?;
    let stop = Arc::new(AtomicBool::new(false));
    let (place, done) = (data.clone(), stop.clone());
    let swapper = std::thread::spawn(move || -> std::io::Result<u32> {
        let mut rounds = 0;
        while !done.load(Ordering::Relaxed) {
            symlink("../secrets/name", place.join("next"))?;
            fs::rename(place.join("next"), place.join("swapped"))?;
            symlink("../secrets", place.join("next-way"))?;
            fs::rename(place.join("next-way"), place.join("way"))?;
            fs::write(place.join("next"), "inside")?;
            fs::rename(place.join("next"), place.join("swapped"))?;
            symlink("real", place.join("next-way"))?;
            fs::rename(place.join("next-way"), place.join("way"))?;
            rounds += 1;
        }
        Ok(rounds)
    });
    // How often each way led to a file, as `ii` and more letters, or `o` at once for what lies outside.
    let start = "(local $left i32) (local $at i32) (local $byte i32)
        (local.set $left (i32.const 3000))
        (loop $next
            (local.set $at (if (result i32) (i32.and (local.get $left) (i32.const 1))
                (then (i32.const 1024)) (else (i32.const 1100))))
            (if (i32.eqz (call $open_file (local.get $at)
                    (if (result i32) (i32.and (local.get $left) (i32.const 1)) (then (i32.const 7)) (else (i32.const 8)))
                    (i32.const 0) (i64.const 2)))
                (then
                    (local.set $byte (call $first_byte))
                    (drop (call $close (i32.load (i32.const 32))))
                    (if (i32.eq (local.get $byte) (i32.const 111)) (then
                        (i32.store8 (i32.const 300) (i32.const 111))
                        (call $write (i32.const 1) (i32.const 300) (i32.const 1)) (return)))
                    (if (i32.eq (local.get $byte) (i32.const 105)) (then
                        (i32.store8 (i32.const 300) (i32.const 105))
                        (call $write (i32.const 1) (i32.const 300) (i32.const 1))))))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))";
    let mut terms = granted(&[(&data, "/data", "read")]);
    terms.budget.wall_clock = Duration::from_secs(60);
    let said = run(&guest(&[(1024, "swapped"), (1100, "way/name")], start), terms).await;
    stop.store(true, Ordering::Relaxed);
    let rounds = swapper.join().map_err(|_| "the swapping thread panicked")??;
    assert!(said.bytes().all(|byte| byte == b'i'), "it saw what lies outside: {said}");
    assert!(rounds > 10 && !said.is_empty(), "{rounds} rounds, {} times inside", said.len());
    Ok(())
}

/// 63 is `perm`. The first directory is for reading, the second and third for writing.
#[tokio::test]
async fn attack_35_nothing_is_linked_or_moved_out_of_or_into_a_directory_for_reading() -> TestResult {
    let folder = tempfile::tempdir()?;
    let [read, write, other] = ["read", "write", "other"].map(|name| folder.path().join(name));
    for directory in [&read, &write, &other] {
        fs::create_dir(directory)?;
        fs::write(directory.join("file"), "inside")?;
    }
    let terms = granted(&[(&read, "/read", "read"), (&write, "/write", "read-write"), (&other, "/o", "read-write")]);
    let act = |action: &str, from: u32, to: u32| {
        let flags = if action == "link" { "(i32.const 0)" } else { "" };
        let start = format!(
            "(call $say (call ${action} (i32.const {from}) {flags} (i32.const 1024) (i32.const 4)
                (i32.const {to}) (i32.const 1100) (i32.const 3)))"
        );
        guest(&[(1024, "file"), (1100, "new")], &start)
    };
    for action in ["link", "rename"] {
        for (from, to) in [(3, 4), (4, 3), (3, 3)] {
            let said = run(&act(action, from, to), terms.clone()).await;
            assert_eq!(said, "63", "{action} from {from} to {to}");
        }
    }
    for directory in [&read, &write] {
        assert_eq!(fs::read_to_string(directory.join("file"))?, "inside");
        assert!(!directory.join("new").exists());
    }
    // Between two directories that it may write to, the guest could copy as well.
    assert_eq!(run(&act("rename", 4, 5), terms).await, "00");
    assert_eq!(fs::read_to_string(other.join("new"))?, "inside");
    Ok(())
}

/// Compiled cells are machine code: whoever writes them is out of every cell.
#[tokio::test]
async fn attack_66_no_guest_writes_where_compiled_cells_are_kept() -> TestResult {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache/cells");
    let cells = cells_with(CellsOptions { cache_dir: Some(cache.clone()), ..CellsOptions::default() });
    fs::create_dir(folder.path().join("other"))?;
    let cell = load(&cells, &guest(&[], "(call $say (i32.const 0))"));
    for (directory, access, expected) in [
        (folder.path().to_owned(), "read-write", false),
        (cache, "read-write", false),
        (folder.path().to_owned(), "read", true),
        (folder.path().join("other"), "read-write", true),
    ] {
        let report = run_with(&cells, &cell, state([]), granted(&[(directory.as_path(), "/data", access)])).await;
        match report.result {
            Ok(said) => assert!(expected && said == "00", "{access} {}", directory.display()),
            Err(error) => assert!(!expected && error.to_string().contains("compiled cells are kept"), "{error}"),
        }
    }
    Ok(())
}

/// The entries of a directory are memory of the guest as long as it reads them, and no longer. 48 is `nomem`.
#[tokio::test]
async fn entries_of_a_directory_are_memory_of_the_guest() -> TestResult {
    let folder = tempfile::tempdir()?;
    for number in 0..1_000 {
        fs::write(folder.path().join(format!("{number:0>250}")), "")?;
    }
    // All entries are read anew each time: 300 times, that would be more than a call may have.
    let start = "(local $left i32) (local $error i32)
        (local.set $left (i32.const 300))
        (loop $next
            (local.set $error
                (call $readdir (i32.const 3) (i32.const 20000) (i32.const 4096) (i64.const 0) (i32.const 80)))
            (if (local.get $error) (then (call $say (local.get $error)) (return)))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $say (i32.const 0))";
    for (memory, expected) in [(Bytes::mib(64), "00"), (Bytes::kib(384), "48")] {
        let mut terms = granted(&[(folder.path(), "/data", "read")]);
        (terms.budget.memory, terms.budget.wall_clock) = (memory, Duration::from_secs(60));
        assert_eq!(run(&guest(&[], start), terms).await, expected);
    }
    Ok(())
}

/// A pipe would block whoever opens it until somebody writes; a device can do anything.
#[test]
fn attack_37_pipes_sockets_and_devices_are_not_opened_and_block_nobody() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)?;
    symlink("pipe", folder.path().join("link"))?;
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket"))?;
    fs::write(folder.path().join("file"), "inside")?;
    let (done, finished) = std::sync::mpsc::channel();
    let place = folder.path().to_owned();
    std::thread::spawn(move || {
        // Dropping the runtime waits for threads that are still blocked, which would be for ever.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let said = runtime.block_on(async {
            let mut said = Vec::new();
            for path in ["pipe", "link", "socket", "file"] {
                for rights in [READ, 64, 66] {
                    let terms = granted(&[(&place, "/data", "read-write")]);
                    said.push((path.to_owned(), run(&opener(path, path.len(), 0, rights), terms).await));
                }
            }
            for path in ["null", "zero", "tty"] {
                let terms = granted(&[(Path::new("/dev"), "/data", "read")]);
                said.push((format!("/dev/{path}"), run(&opener(path, path.len(), 0, READ), terms).await));
            }
            for path in ["root/etc/passwd", "cwd/Cargo.toml", "fd/0"] {
                let terms = granted(&[(Path::new("/proc/self"), "/data", "read")]);
                said.push((format!("/proc/self/{path}"), run(&opener(path, path.len(), 0, READ), terms).await));
            }
            said
        });
        drop(runtime);
        let _ = done.send(said);
    });
    let said = finished.recv_timeout(Duration::from_secs(60)).map_err(|_| "a thread is blocked for ever")?;
    for (path, said) in &said {
        if path == "file" {
            assert!(said == "i" || said == "-", "{path}: {said}");
        } else {
            // A granted directory that is a link is refused as a whole.
            assert!(said.len() == 2 || said.contains("is a link"), "{path}: {said}");
        }
    }
    Ok(())
}

/// 28 is `inval`, 25 `ilseq`, 37 `nametoolong`. A name that another system reserves is a name like any other.
#[tokio::test]
async fn attack_38_odd_names_are_taken_literally_or_refused() -> TestResult {
    let folder = tempfile::tempdir()?;
    let (create, rights) = CREATE_AND_WRITE;
    let grant = || granted(&[(folder.path(), "/data", "read-write")]);
    let long = "x".repeat(300);
    for (path, length, expected) in [("a\\00b", 3, "28"), (long.as_str(), 300, "37"), ("", 0, "44")] {
        assert_eq!(run(&opener(path, length, create, rights), grant()).await, expected, "{path:?}");
    }
    // Bytes that are no text do not reach the host at all.
    let said = run(&opener("a\\ffb", 3, create, rights), grant()).await;
    assert!(said.contains("utf-8") || said == "25", "{said}");
    let (composed, decomposed) = ("\u{e9}", "e\u{301}");
    let literal = ["CON", "aux:", "a\nb", "nul.txt", "C:\\\\x", " ", composed, decomposed];
    for path in literal {
        let plain = path.replace("\\\\", "\\");
        let path = path.replace('\n', "\\n");
        assert_eq!(run(&opener(&path, plain.len(), create, rights), grant()).await, "-", "{path:?}");
        assert!(folder.path().join(&plain).is_file(), "{plain:?}");
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), literal.len());
    Ok(())
}

#[tokio::test]
async fn attack_77_times_before_1970_and_beyond_all_time_are_times() -> TestResult {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("file");
    fs::write(&file, "inside")?;
    let grant = || granted(&[(folder.path(), "/data", "read-write")]);
    let stat = "(call $say (call $stat (i32.const 3) (i32.const 1) (i32.const 1024) (i32.const 4) (i32.const 2048)))
        (call $say (i32.wrap_i64 (i64.div_u (i64.load (i32.const 2096)) (i64.const 1000000000))))";
    for (seconds, expected) in [(-1_i64, "0000"), (-2_000_000_000, "0000"), (0, "0000"), (7, "0007")] {
        let time = match u64::try_from(seconds) {
            Ok(after) => UNIX_EPOCH + Duration::from_secs(after),
            Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()),
        };
        fs::File::options().write(true).open(&file)?.set_modified(time)?;
        assert_eq!(run(&guest(&[(1024, "file")], stat), grant()).await, expected, "{seconds}");
    }
    for time in [i64::MAX, -1, 0] {
        let start = format!(
            "(call $say (call $times (i32.const 3) (i32.const 1) (i32.const 1024) (i32.const 4)
                (i64.const {time}) (i64.const {time}) (i32.const 5)))"
        );
        let said = run(&guest(&[(1024, "file")], &start), grant()).await;
        assert_eq!(said, "00", "{time}");
        // However far in the future the file system can be, the file is still there and can be read.
        assert_eq!(run(&opener("file", 4, 0, READ), grant()).await, "i");
    }
    Ok(())
}
