//! What a component was built from. As long as all of that is the same, the component is not built again: making one of
//! Python or JavaScript takes seconds.
//!
//! Contents count, and not times: what a version control system checks out or a copy brings is not taken for a change.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::manifest::{FILE, Manifest};

/// Raised with every change of what a stamp holds, or of how components are made.
const LAYOUT: u32 = 1;
/// Files that a project may have and still be looked at. A larger one is built each time.
const MOST_FILES: usize = 10_000;
/// Folders beside the code that are no part of it, wherever they are.
const NO_SOURCES: [&str; 5] = ["build", "cases", "node_modules", "target", "__pycache__"];
/// Files of a project that tell its tools what to do.
const SETTINGS: [&str; 4] = [FILE, "package.json", "package-lock.json", "tsconfig.json"];

/// Digests by path.
type Digests = BTreeMap<PathBuf, String>;

/// What a component was built from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stamp {
    layout: u32,
    /// The version of hotcell, which carries a part of what makes components.
    hotcell: String,
    /// The programs that make the component, with their versions.
    tools: Vec<String>,
    /// Everything in the folders of the code and of the SDK.
    files: Digests,
    /// What the tools say that they read besides.
    read: Digests,
    /// The component that was made.
    component: String,
}

impl Stamp {
    /// What the next build would be made from. None where that cannot be found out, so that it has to be built.
    pub(super) fn of(directory: &Path, manifest: &Manifest, tools: Vec<String>) -> Option<Self> {
        let code = manifest.source.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut found = Vec::new();
        for folder in [code.unwrap_or(Path::new(".")), &manifest.sdk] {
            list(directory, folder, &mut found).ok()?;
        }
        found.extend(SETTINGS.iter().map(PathBuf::from).filter(|file| directory.join(file).is_file()));
        let files = digests(directory, found)?;
        let (hotcell, read, component) = (env!("CARGO_PKG_VERSION").to_owned(), Digests::new(), String::new());
        Some(Self { layout: LAYOUT, hotcell, tools, files, read, component })
    }

    /// The component at `path`, if it was built from the same.
    pub(super) fn component(&self, directory: &Path, path: &Path) -> Option<Vec<u8>> {
        let text = hotcell_files::read_text(stamp_of(path), hotcell_files::MAX_TEXT).ok()?;
        let before: Self = serde_json::from_str(&text).ok()?;
        let read = digests(directory, before.read.keys().cloned().collect())?;
        let component = hotcell_files::read(path, hotcell_files::MAX_COMPONENT).ok()?;
        let expected = Self {
            layout: self.layout,
            hotcell: self.hotcell.clone(),
            tools: self.tools.clone(),
            files: self.files.clone(),
            read,
            component: digest(&component),
        };
        (before == expected).then_some(component)
    }

    /// Notes that the component at `path` was built from this, and from the files that the tools read besides.
    ///
    /// A project whose stamp cannot be written is built again the next time, which is no failure.
    pub(super) fn write(mut self, directory: &Path, read: Vec<PathBuf>, path: &Path, component: String) {
        let besides = read.into_iter().filter(|file| !self.files.contains_key(file)).collect();
        let Some(read) = digests(directory, besides) else { return };
        (self.read, self.component) = (read, component);
        if let Ok(text) = serde_json::to_string(&self) {
            let _ = fs::write(stamp_of(path), text);
        }
    }
}

/// Removes the stamp of a component that is about to be replaced.
pub(super) fn forget(path: &Path) {
    let _ = fs::remove_file(stamp_of(path));
}

fn stamp_of(component: &Path) -> PathBuf {
    component.with_extension("stamp.json")
}

/// Adds the files in a folder, with paths relative to `directory`. Hidden ones are left out.
fn list(directory: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if folder == Path::new(".") { entry.file_name().into() } else { folder.join(entry.file_name()) };
        let kind = entry.file_type()?;
        if name.starts_with('.') || (kind.is_dir() && NO_SOURCES.contains(&&*name)) {
            continue;
        }
        if kind.is_dir() {
            list(directory, &path, found)?;
        } else if kind.is_symlink() && directory.join(&path).is_dir() {
            // What is behind it may be anything, and lead back here.
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        } else {
            found.push(path);
        }
        if found.len() > MOST_FILES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
    }
    Ok(())
}

fn digests(directory: &Path, files: Vec<PathBuf>) -> Option<Digests> {
    let one = |path: PathBuf| {
        let bytes = hotcell_files::read(directory.join(&path), hotcell_files::MAX_COMPONENT).ok()?;
        Some((path, digest(&bytes)))
    };
    files.into_iter().map(one).collect()
}

/// The SHA-256 digest, in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{Stamp, digest};
    use crate::manifest::Manifest;

    struct Project(tempfile::TempDir);

    impl Project {
        fn new() -> Self {
            let project = Self(tempfile::tempdir().expect("a folder"));
            project
                .write("plugin.toml", "name = \"x\"\nkind = \"tool\"\nlanguage = \"python\"\nsource = \"src/a.py\"\n");
            for (path, text) in [("src/a.py", "a"), ("src/data/b.txt", "b"), ("sdk/s.py", "s"), ("other/o.py", "o")] {
                project.write(path, text);
            }
            project
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        fn stamp(&self, tool: &str) -> Option<Stamp> {
            let manifest = Manifest::read(self.0.path()).expect("a manifest");
            Stamp::of(self.0.path(), &manifest, vec![tool.to_owned()])
        }

        fn built(&self) {
            self.write("build/x.wasm", "component");
            let read = vec![self.path("other/o.py"), Path::new("src/a.py").to_owned()];
            let stamp = self.stamp("tool 1").expect("a stamp");
            stamp.write(self.0.path(), read, &self.path("build/x.wasm"), digest(b"component"));
        }

        fn is_reused(&self, tool: &str) -> bool {
            let stamp = self.stamp(tool);
            stamp.is_some_and(|stamp| stamp.component(self.0.path(), &self.path("build/x.wasm")).is_some())
        }
    }

    #[test]
    fn what_is_no_part_of_it_changes_nothing() {
        let project = Project::new();
        assert!(!project.is_reused("tool 1"), "nothing was built");
        project.built();
        for path in ["README.md", "cases/a.json", "src/__pycache__/a.pyc", "src/.a.py.swp", "other/unread.py"] {
            project.write(path, "new");
        }
        // The same contents at another time.
        project.write("src/a.py", "a");
        assert!(project.is_reused("tool 1"));
    }

    #[test]
    fn every_part_of_it_counts() {
        let changes = [
            ("src/a.py", "changed"),
            ("src/new.py", "new"),
            ("src/data/b.txt", "changed"),
            ("sdk/s.py", "changed"),
            ("other/o.py", "changed"),
            ("package.json", "{}"),
            ("plugin.toml", "name = \"x\"\nkind = \"hooks\"\nlanguage = \"python\"\nsource = \"src/a.py\"\n"),
            ("build/x.wasm", "somebody wrote another one"),
            ("build/x.stamp.json", "{"),
        ];
        for (path, text) in changes {
            let project = Project::new();
            project.built();
            assert!(project.is_reused("tool 1"));
            assert!(!project.is_reused("tool 2"), "another tool");
            project.write(path, text);
            assert!(!project.is_reused("tool 1"), "{path}");
        }
        for path in ["src/data/b.txt", "other/o.py", "build/x.wasm"] {
            let project = Project::new();
            project.built();
            fs::remove_file(project.path(path)).expect("no file");
            assert!(!project.is_reused("tool 1"), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn code_behind_a_link_is_built_each_time() {
        let project = Project::new();
        std::os::unix::fs::symlink(project.path("other"), project.path("src/other")).expect("a link");
        assert!(project.stamp("tool 1").is_none());
    }
}
