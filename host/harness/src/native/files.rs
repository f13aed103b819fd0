//! Files of a case without a cell: those in the directories that it is granted, at the paths that the plugin uses.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use hotcell_cells::{Access, DirectoryGrant};
use serde_json::{Value, json};

/// Why there is no file: the kind of the contract's error, and its message.
pub(super) type FileError = (&'static str, String);

/// Does what a function of the SDKs does, in the directories of `grants`.
pub(super) fn perform(grants: &[DirectoryGrant], function: &str, arguments: &Value) -> Result<Value, FileError> {
    let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    let access = if matches!(function, "read" | "entries") { Access::Read } else { Access::ReadWrite };
    let place = place(grants, path, access)?;
    let done = match function {
        "read" => hotcell_files::read(&place, hotcell_files::MAX_COMPONENT).map(|bytes| json!(bytes)),
        "write" => {
            let bytes: Vec<u8> = serde_json::from_value(arguments["contents"].clone()).unwrap_or_default();
            fs::write(&place, bytes).map(|()| Value::Null)
        }
        "entries" => entries(&place),
        "make_directory" => fs::create_dir(&place).map(|()| Value::Null),
        "remove" if place.is_dir() => fs::remove_dir(&place).map(|()| Value::Null),
        _ => fs::remove_file(&place).map(|()| Value::Null),
    };
    done.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ("invalid-input", format!("there is no `{path}`")),
        _ => ("other", format!("`{path}`: {error}")),
    })
}

/// Where a path of the plugin's is on this machine, which has to be inside the directory that is granted.
fn place(grants: &[DirectoryGrant], path: &str, access: Access) -> Result<PathBuf, FileError> {
    let inside = |grant: &&DirectoryGrant| Path::new(path).starts_with(&grant.guest);
    let grant = grants.iter().filter(inside).max_by_key(|grant| grant.guest.len());
    let Some(grant) = grant else {
        return Err(("denied", format!("no directory is granted for `{path}` (capability `fs`)")));
    };
    let refused = || ("denied", format!("`{path}` was not granted to be used like this (capability `fs`)"));
    if grant.access < access {
        return Err(refused());
    }
    let rest = Path::new(path).strip_prefix(&grant.guest).map_err(|_| refused())?;
    if rest.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(refused());
    }
    let place = grant.host.join(rest);
    // Links are followed; what they lead to has to be inside as well.
    let real = place.canonicalize().or_else(|_| place.parent().unwrap_or(&place).canonicalize());
    match (real, grant.host.canonicalize()) {
        (Ok(real), Ok(root)) if !real.starts_with(&root) => Err(refused()),
        _ => Ok(place),
    }
}

fn entries(folder: &Path) -> io::Result<Value> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let end = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{end}", entry.file_name().to_string_lossy()));
    }
    Ok(json!(names))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hotcell_cells::{Access, DirectoryGrant};
    use serde_json::{Value, json};

    use super::perform;

    #[test]
    fn files_are_reached_inside_of_what_is_granted_only() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/a.txt"), "a").unwrap();
        fs::write(folder.path().join("secret.txt"), "s").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("data/out")).unwrap();
        let grant = |access| {
            let grant = json!({ "host": folder.path().join("data"), "guest": "/data", "access": access });
            vec![serde_json::from_value::<DirectoryGrant>(grant).unwrap()]
        };
        let done = |access, function: &str, path: &str| {
            let arguments = json!({ "path": path, "contents": [98] });
            perform(&grant(access), function, &arguments).map_err(|(kind, _)| kind)
        };
        let (read, write) = (Access::Read, Access::ReadWrite);
        assert_eq!(done(read, "read", "/data/a.txt"), Ok(json!([97])));
        assert_eq!(done(read, "read", "/data/b.txt"), Err("invalid-input"));
        assert_eq!(done(read, "write", "/data/a.txt"), Err("denied"));
        for path in ["/secret.txt", "/data/../secret.txt", "/data/out/secret.txt", "/database", "a.txt", ""] {
            if cfg!(unix) || !path.contains("out") {
                assert_eq!(done(write, "read", path), Err("denied"), "{path}");
                assert_eq!(done(write, "write", path), Err("denied"), "{path}");
            }
        }
        assert_eq!(done(write, "write", "/data/b.txt"), Ok(Value::Null));
        assert_eq!(done(write, "make_directory", "/data/c"), Ok(Value::Null));
        let listed = done(write, "entries", "/data").unwrap();
        assert!(listed.as_array().unwrap().contains(&json!("c/")), "{listed}");
        assert_eq!(done(write, "remove", "/data/c"), Ok(Value::Null));
        assert_eq!(done(write, "remove", "/data/b.txt"), Ok(Value::Null));
        assert_eq!(done(write, "read", "/data/b.txt"), Err("invalid-input"));
    }
}
