use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{Entry, FileError, Folder};
use crate::{read, read_text};

/// A folder with a file, a folder below it, and a key beside it that nobody in it may reach.
fn place() -> (TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("agent");
    fs::create_dir_all(folder.join("sub/deep")).unwrap();
    fs::write(folder.join("own.txt"), "own").unwrap();
    fs::write(folder.join("sub/below.txt"), "below").unwrap();
    fs::write(place.path().join("key"), "private").unwrap();
    (place, Folder::new(&folder))
}

fn text(folder: &Folder, name: &str) -> Result<String, FileError> {
    folder.read_text(Path::new(name), 100)
}

#[test]
fn what_lies_inside_is_read_however_it_is_written() {
    let (_place, folder) = place();
    let absolute = folder.path().join("own.txt").display().to_string();
    for name in ["own.txt", "./own.txt", "sub/../own.txt", "sub/deep/../../own.txt", &absolute] {
        assert_eq!(text(&folder, name).unwrap(), "own", "{name}");
    }
    assert_eq!(text(&folder, "sub/below.txt").unwrap(), "below");
    assert_eq!((folder.entry(Path::new("sub")), folder.entry(Path::new(""))), (Entry::Folder, Entry::Folder));
    assert!(folder.real_path(Path::new("sub/../own.txt")).unwrap().ends_with("agent/own.txt"));
}

#[test]
fn nothing_outside_is_reached() {
    let (place, folder) = place();
    let key = place.path().join("key").display().to_string();
    let detour = format!("{}/../key", folder.path().display());
    for name in ["../key", "sub/../../key", "sub/deep/../../../key", "/etc/passwd", "../none", &key, &detour] {
        assert!(matches!(text(&folder, name), Err(FileError::Outside)), "{name}");
        assert_eq!(folder.entry(Path::new(name)), Entry::Outside, "{name}");
        assert!(folder.real_path(Path::new(name)).is_err(), "{name}");
    }
    assert!(matches!(text(&folder, "~/.ssh/id_rsa"), Err(FileError::Missing)), "a tilde is a letter like others");
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_and_refused_where_they_leave() {
    use std::os::unix::fs::symlink;

    let (place, folder) = place();
    let at = |name: &str| folder.path().join(name);
    symlink("own.txt", at("inside")).unwrap();
    symlink("../own.txt", at("sub/up")).unwrap();
    symlink(place.path().join("key"), at("absolute")).unwrap();
    symlink("../key", at("relative")).unwrap();
    symlink(place.path(), at("out")).unwrap();
    symlink("absolute", at("chain")).unwrap();
    symlink("loop", at("loop")).unwrap();
    for name in ["inside", "sub/up"] {
        assert_eq!(text(&folder, name).unwrap(), "own", "{name}");
    }
    for name in ["absolute", "relative", "out/key", "chain", "out/agent/../key"] {
        assert!(matches!(text(&folder, name), Err(FileError::Outside)), "{name}: {:?}", text(&folder, name));
        assert_eq!(folder.entry(Path::new(name)), Entry::Outside, "{name}");
    }
    assert!(text(&folder, "loop").is_err());
}

#[test]
fn only_regular_files_up_to_a_size_are_read() {
    let (_place, folder) = place();
    fs::write(folder.path().join("large"), vec![b'x'; 101]).unwrap();
    fs::write(folder.path().join("full"), vec![b'x'; 100]).unwrap();
    fs::write(folder.path().join("odd"), b"ab\xff").unwrap();
    assert!(text(&folder, "large").unwrap_err().to_string().contains("at most 100 are read"));
    assert_eq!(text(&folder, "full").unwrap().len(), 100);
    assert!(text(&folder, "odd").unwrap_err().to_string().contains("byte 2 is wrong"));
    assert!(text(&folder, "sub").unwrap_err().to_string().contains("it is a directory, not a regular file"));
    assert!(matches!(text(&folder, "own.txt/x"), Err(FileError::Missing)));
    assert!(read(folder.path().join("large"), 100).is_err());
    assert!(read(folder.path(), 100).is_err());
    assert!(read(folder.path().join("none"), 100).is_err());
    assert_eq!(read_text(folder.path().join("own.txt"), 100).unwrap(), "own");
}

/// Whoever opens a pipe to read from it waits until somebody writes into it, and a device never ends.
#[cfg(target_os = "linux")]
#[test]
fn pipes_and_devices_are_not_waited_for() {
    let (_place, folder) = place();
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(text(&folder, "pipe").unwrap_err().to_string().contains("it is a pipe, not a regular file"));
    assert_eq!(folder.entry(Path::new("pipe")), Entry::Special);
    for path in [&*pipe, Path::new("/dev/zero")] {
        assert!(read(path, 100).is_err(), "{}", path.display());
    }
}
