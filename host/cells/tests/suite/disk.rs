//! What a guest may leave in the directories that it was granted: bytes and files end at the limits of its call, of the
//! grant, and of the disk.

use std::fs;
use std::path::Path;

use crate::support::{
    TestResult, WRITE, WRITE_IMPORT, assert_limit, cells, command, error, grants, load, run_with, state,
};
use hotcell_budget::{Budget, Bytes, Limit};
use hotcell_cells::{Report, Terms};

const IMPORTS: &str = r#"
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_pwrite" (func $pwrite (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $resize (param i32 i64) (result i32)))
    (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))"#;

/// Opens `file` into 32 with these flags for writing; the second are those of the descriptor (1 appends).
const OPEN: &str = "(func $open_file (param $how i32) (param $flags i32)
        (if (call $open (i32.const 3) (i32.const 1) (i32.const 1100) (i32.const 4) (local.get $how) (i64.const 66)
            (i64.const 0) (local.get $flags) (i32.const 32)) (then (unreachable))))";

/// A guest that does something `times` times and traps as soon as it fails with another error than 0. `$i` counts; at 1024
/// lies a name of two letters that is another each time, at 64 the address and length of 4,096 bytes.
fn doing(before: &str, action: &str, times: u32) -> Vec<u8> {
    let parts = format!(
        r#"{WRITE} {OPEN} (data (i32.const 1100) "file") (data (i32.const 1200) "done")
        (func $start (local $i i32)
            (i32.store (i32.const 64) (i32.const 8192)) (i32.store (i32.const 68) (i32.const 4096))
            {before}
            (loop $next
                (i32.store8 (i32.const 1024) (i32.add (i32.const 97) (i32.rem_u (local.get $i) (i32.const 26))))
                (i32.store8 (i32.const 1025) (i32.add (i32.const 97) (i32.div_u (local.get $i) (i32.const 26))))
                (if {action} (then (unreachable)))
                (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))
            (call $write (i32.const 1) (i32.const 1200) (i32.const 4)))"#
    );
    command(&format!("{WRITE_IMPORT} {IMPORTS}"), &parts)
}

const FD: &str = "(i32.load (i32.const 32))";

fn writing() -> String {
    format!("(call $fd_write {FD} (i32.const 64) (i32.const 1) (i32.const 80))")
}

async fn run(bytes: &[u8], folder: &Path, more: &str, budget: Budget) -> Report<String> {
    let grant = format!("fs = [{{ host = '{}', guest = '/data', access = 'read-write'{more} }}]", folder.display());
    let cells = cells();
    let terms = Terms { grants: grants(&grant), budget, ..crate::support::terms(Budget::default()) };
    run_with(&cells, &load(&cells, bytes), state([]), terms).await
}

/// Each way to write bytes: through streams, at a place, at the end, by size alone.
#[tokio::test]
async fn attack_bytes_end_at_the_limit_of_the_call_however_they_are_written() -> TestResult {
    let budget = Budget { file_bytes: Bytes(10_000), ..Budget::default() };
    let pwrite = format!(
        "(call $pwrite {FD} (i32.const 64) (i32.const 1) (i64.extend_i32_u (i32.mul (local.get $i) (i32.const 4096))) (i32.const 80))"
    );
    let resize = format!(
        "(call $resize {FD} (i64.extend_i32_u (i32.mul (i32.add (local.get $i) (i32.const 1)) (i32.const 4096))))"
    );
    for (before, action) in [
        ("(call $open_file (i32.const 1) (i32.const 0))", writing()),
        ("(call $open_file (i32.const 1) (i32.const 1))", writing()),
        ("(call $open_file (i32.const 1) (i32.const 0))", pwrite),
        ("(call $open_file (i32.const 1) (i32.const 0))", resize),
    ] {
        let folder = tempfile::tempdir()?;
        let enough = run(&doing(before, &action, 2), folder.path(), "", budget.clone()).await;
        assert_eq!(enough.result.as_deref(), Ok("done"), "{action}");
        assert_eq!((enough.usage.file_bytes, enough.usage.files), (Bytes(8192), 1), "{action}");
        let folder = tempfile::tempdir()?;
        let report = run(&doing(before, &action, 3), folder.path(), "", budget.clone()).await;
        assert_limit(&report, Limit::Files);
        assert!(error(&report).to_string().contains("more than 9.8 KiB written to files"), "{}", error(&report));
        assert_eq!(fs::metadata(folder.path().join("file"))?.len(), 8192, "{action}");
    }
    Ok(())
}

/// Each way to make something: files, directories, links of both kinds.
#[tokio::test]
async fn attack_what_is_made_ends_at_the_limit_of_the_call() -> TestResult {
    let budget = Budget { files: 5, ..Budget::default() };
    let name = "(i32.const 1024) (i32.const 2)";
    for action in [
        format!(
            "(call $open (i32.const 3) (i32.const 1) {name} (i32.const 1) (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 32))"
        ),
        format!("(call $mkdir (i32.const 3) {name})"),
        format!("(call $symlink (i32.const 1100) (i32.const 4) (i32.const 3) {name})"),
        format!("(call $link (i32.const 3) (i32.const 0) (i32.const 1100) (i32.const 4) (i32.const 3) {name})"),
    ] {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("file"), "there before")?;
        let report = run(&doing("", &action, 600), folder.path(), "", budget.clone()).await;
        assert_limit(&report, Limit::Files);
        assert!(error(&report).to_string().contains("more than 5 files and directories made"), "{}", error(&report));
        assert_eq!((fs::read_dir(folder.path())?.count(), report.usage.files), (6, 5), "{action}");
    }
    Ok(())
}

/// What is there counts, whoever put it there; what is overwritten or deleted is free again.
#[tokio::test]
async fn a_directory_holds_what_its_grant_says_and_no_more() -> TestResult {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("deep"))?;
    fs::write(folder.path().join("deep/there"), [0; 4_000])?;
    let open = "(call $open_file (i32.const 1) (i32.const 0))";
    let most = ", max_bytes = 10_000";
    let report = run(&doing(open, &writing(), 3), folder.path(), most, Budget::default()).await;
    assert_limit(&report, Limit::Files);
    let said = error(&report).to_string();
    assert!(said.contains("by its grant `/data` holds at most 9.8 KiB"), "{said}");
    assert_eq!(fs::metadata(folder.path().join("file"))?.len(), 4096);
    // The next call finds it as full.
    let again = run(&doing(open, &writing(), 2), folder.path(), most, Budget::default()).await;
    assert_limit(&again, Limit::Files);
    // One that overwrites is not stopped by what it wrote before.
    let over = format!("(call $pwrite {FD} (i32.const 64) (i32.const 1) (i64.const 0) (i32.const 80))");
    let report = run(&doing(open, &over, 6), folder.path(), ", max_bytes = 12_000", Budget::default()).await;
    assert_eq!(report.result.as_deref(), Ok("done"));

    let make =
        "(i32.or (call $open (i32.const 3) (i32.const 1) (i32.const 1024) (i32.const 2) (i32.const 1) (i64.const 66)
        (i64.const 0) (i32.const 0) (i32.const 32)) (call $close (i32.load (i32.const 32))))";
    let report = run(&doing("", make, 10), folder.path(), ", max_files = 6", Budget::default()).await;
    assert_limit(&report, Limit::Files);
    assert!(error(&report).to_string().contains("holds at most 6 files"), "{}", error(&report));
    // `deep`, `deep/there`, `file`, and three more.
    assert_eq!(fs::read_dir(folder.path())?.count(), 5);
    let delete = format!("(i32.or {make} (call $unlink (i32.const 3) (i32.const 1024) (i32.const 2)))");
    let report = run(&doing("", &delete, 5), folder.path(), ", max_files = 7", Budget::default()).await;
    assert_eq!(report.result.as_deref(), Ok("done"));
    Ok(())
}

/// What lies in a directory without a limit is neither moved nor linked into one that has a limit: 75 is `xdev`.
#[tokio::test]
async fn nothing_is_moved_past_the_limit_of_a_directory() -> TestResult {
    let place = tempfile::tempdir()?;
    let [free, small] = ["free", "small"].map(|name| place.path().join(name));
    for directory in [&free, &small] {
        fs::create_dir(directory)?;
        fs::write(directory.join("file"), [0; 4_000])?;
    }
    let directory = |folder: &Path, more: &str| {
        format!("{{ host = '{0}', guest = '/d{1}', access = 'read-write'{more} }}", folder.display(), more.len())
    };
    let list = format!("fs = [{}, {}]", directory(&free, ""), directory(&small, ", max_bytes = 5_000"));
    let cells = cells();
    let terms = Terms { grants: grants(&list), ..crate::support::terms(Budget::default()) };
    let name = "(i32.const 1100) (i32.const 4)";
    let other = "(i32.const 1024) (i32.const 2)";
    for (from, into, expected) in [(3, 4, 75), (4, 3, 0), (4, 4, 0), (3, 3, 0)] {
        for action in [
            format!("(call $link (i32.const {from}) (i32.const 0) {name} (i32.const {into}) {other})"),
            format!("(call $rename (i32.const {from}) {name} (i32.const {into}) {other})"),
        ] {
            let action = format!("(i32.ne {action} (i32.const {expected}))");
            let report = run_with(&cells, &load(&cells, &doing("", &action, 1)), state([]), terms.clone()).await;
            assert_eq!(report.result.as_deref(), Ok("done"), "{action}");
            for directory in [&free, &small] {
                let _ = fs::remove_file(directory.join("aa"));
                fs::write(directory.join("file"), [0; 4_000])?;
            }
        }
    }
    Ok(())
}

/// A byte at the end of a hole, and then the hole itself.
#[tokio::test]
async fn a_hole_in_a_file_is_room_that_is_taken() -> TestResult {
    let folder = tempfile::tempdir()?;
    let open = "(call $open_file (i32.const 1) (i32.const 0))";
    let backwards = format!(
        "(call $pwrite {FD} (i32.const 64) (i32.const 1)
            (i64.extend_i32_u (i32.mul (i32.sub (i32.const 4) (local.get $i)) (i32.const 4096))) (i32.const 80))"
    );
    let report = run(&doing(open, &backwards, 5), folder.path(), ", max_bytes = 10_000", Budget::default()).await;
    assert_limit(&report, Limit::Files);
    assert_eq!(fs::metadata(folder.path().join("file"))?.len(), 0);
    let report = run(&doing(open, &backwards, 5), folder.path(), ", max_bytes = 20_480", Budget::default()).await;
    assert_eq!((report.result.as_deref(), report.usage.file_bytes), (Ok("done"), Bytes(5 * 4096)));
    Ok(())
}

/// Two directories with limits of their own, and what is opened below them.
#[tokio::test]
async fn each_directory_has_its_own_limit() -> TestResult {
    let [one, two] = [tempfile::tempdir()?, tempfile::tempdir()?];
    let directory = |folder: &Path, guest: &str, most: u32| {
        format!("{{ host = '{}', guest = '{guest}', access = 'read-write', max_files = {most} }}", folder.display())
    };
    let list = format!("fs = [{}, {}]", directory(one.path(), "/one", 2), directory(two.path(), "/two", 9));
    let cells = cells();
    let terms = Terms { grants: grants(&list), ..crate::support::terms(Budget::default()) };
    let make = |fd: u32| format!("(call $mkdir (i32.const {fd}) (i32.const 1024) (i32.const 2))");
    for (fd, made) in [(3, 2), (4, 9)] {
        let report = run_with(&cells, &load(&cells, &doing("", &make(fd), 20)), state([]), terms.clone()).await;
        assert_limit(&report, Limit::Files);
        let folder = if fd == 3 { one.path() } else { two.path() };
        assert_eq!(fs::read_dir(folder)?.count(), made);
    }
    // What is made in a directory below counts where that lies.
    let below =
        "(if (call $open (i32.const 4) (i32.const 1) (i32.const 1300) (i32.const 2) (i32.const 2) (i64.const 512)
        (i64.const -1) (i32.const 0) (i32.const 32)) (then (unreachable)))
        (i32.store8 (i32.const 1300) (i32.const 97)) (i32.store8 (i32.const 1301) (i32.const 97))";
    let below = format!("(i32.store16 (i32.const 1300) (i32.const 24929)) {below}");
    let action = format!("(call $mkdir {FD} (i32.const 1024) (i32.const 2))");
    let report = run_with(&cells, &load(&cells, &doing(&below, &action, 3)), state([]), terms).await;
    assert_limit(&report, Limit::Files);
    assert_eq!(fs::read_dir(two.path().join("aa"))?.count(), 0);
    Ok(())
}
