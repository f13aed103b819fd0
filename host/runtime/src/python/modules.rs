//! Where Python finds the modules of the project that an agent's file belongs to.
//!
//! A project's code names its modules from the project's root, wherever the agent's file lies in it. So the root is looked at,
//! too, although it lies above the agent's folder. What that opens is little: only a module is read, which is a file `NAME.py` or
//! `NAME/__init__.py` whose path is made of names that Python could import, and that, links followed, lies below the root. Its
//! text goes into a cell and nowhere else, and the cell has no more rights for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_files::{Entry, FileError};
use serde_json::{Value, json};
use thiserror::Error;

use crate::revision::sources::Sources;

/// Files that mark the root of a project; the search upwards ends there.
const MARKS: [&str; 2] = ["pyproject.toml", ".git"];
/// The file of a folder that somebody set up for hotcell. It is a root as well, but what is above may be one, too.
const SETTINGS: &str = "hotcell.toml";
/// Where many projects keep their packages.
const SOURCES: &str = "src";
/// Bytes that the text of a module may have.
const MAX_MODULE: u64 = 1 << 20;
/// Bytes that all modules of a file may have together.
const MAX_TOGETHER: usize = 8 << 20;
/// Libraries that open sockets, which a cell has not: what stands in their place asks the host.
const OVER_HTTP: [&str; 3] = ["httpx", "requests", "urllib3"];
/// What that is.
const HTTP: &str = include_str!("http.py");
/// What stands in the place of modules whose names mean something here.
const STAND_INS: [(&str, &str); 4] = [
    ("langchain.tools", LANGCHAIN_TOOLS),
    ("langchain_core.tools", LANGCHAIN_TOOLS),
    ("leafmesh", include_str!("leafmesh.py")),
    ("pydantic", include_str!("pydantic.py")),
];
const LANGCHAIN_TOOLS: &str = include_str!("langchain_tools.py");

/// The folders below which modules are found, the nearest first.
#[derive(Clone)]
pub(crate) struct ProjectModules {
    sources: Arc<Sources>,
    /// The agent's folder, for names of files relative to it
    folder: PathBuf,
    /// Without links
    roots: Vec<PathBuf>,
}

/// A module that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// Its file, relative to the agent's folder; of a package without a file of its own, its folder
    pub(crate) file: String,
    pub(crate) is_package: bool,
}

/// Why a module that was found cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ModuleError {
    /// A link leads to something else
    #[error("cannot read `{file}`: it leads out of the project")]
    LeadsOut {
        /// Its file, relative to the agent's folder
        file: String,
    },
    /// Its file cannot be read
    #[error("cannot read `{file}`: {cause}")]
    Unreadable {
        /// Its file, relative to the agent's folder
        file: String,
        /// Why not
        #[source]
        cause: FileError,
    },
    /// There is too much to import
    #[error("what it imports has more than {MAX_TOGETHER} bytes, with `{name}`")]
    TooMuch {
        /// The module with which it is too much
        name: String,
    },
}

impl ProjectModules {
    /// The roots of the project around an agent's folder: the folder itself, what is marked above it, and `src` there. The
    /// home folder of a person is no project, and neither is what lies above it.
    pub(crate) fn around(sources: &Arc<Sources>, folder: &Path) -> Self {
        Self::below_home(sources, folder, dirs::home_dir().as_deref())
    }

    fn below_home(sources: &Arc<Sources>, folder: &Path, home: Option<&Path>) -> Self {
        let anywhere = sources.anywhere();
        let own = anywhere.real_path(folder).unwrap_or_else(|_| folder.to_owned());
        let home = home.and_then(|home| std::fs::canonicalize(home).ok());
        let mut roots = vec![own.clone()];
        for above in own.ancestors() {
            if above.parent().is_none() || home.as_deref().is_some_and(|home| home.starts_with(above)) {
                break;
            }
            let is_root = MARKS.iter().any(|mark| anywhere.entry(&above.join(mark)) != Entry::Missing);
            if is_root || anywhere.is_file(&above.join(SETTINGS)) {
                let new = [above.to_owned(), above.join(SOURCES)].into_iter();
                roots.extend(new.filter(|root| anywhere.is_folder(root) && *root != own));
            }
            if is_root {
                break;
            }
        }
        ProjectModules { sources: sources.clone(), folder: own, roots }
    }

    /// The folders that are roots, the nearest first, without links.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The folder above the agent's, if it belongs to the project, too.
    pub(crate) fn above(&self) -> Option<&Path> {
        let above = self.folder.parent()?;
        self.roots.iter().any(|root| above.starts_with(root)).then_some(above)
    }

    /// The module of a dotted name; none if no root has it.
    pub(crate) fn find(&self, name: &str) -> Option<Module> {
        let path = path_of(name)?;
        self.roots.iter().find_map(|root| {
            let inside = self.sources.below(root);
            let file = |file: String| inside.is_file(Path::new(&file)).then(|| self.shown(&root.join(file)));
            if let Some(file) = file(format!("{path}/__init__.py")) {
                return Some(Module { file, is_package: true });
            }
            if let Some(file) = file(format!("{path}.py")) {
                return Some(Module { file, is_package: false });
            }
            let is_package = inside.is_folder(Path::new(&path));
            is_package.then(|| Module { file: self.shown(&root.join(&path)), is_package })
        })
    }

    /// The file with this path below the nearest root that has it, relative to the agent's folder.
    pub(crate) fn file(&self, path: &str) -> Option<String> {
        let root = self.roots.iter().find(|root| self.sources.below(root).is_file(Path::new(path)))?;
        Some(self.shown(&root.join(path)))
    }

    /// A path as it is written from the agent's folder, with `/` between the parts.
    fn shown(&self, path: &Path) -> String {
        let (from, to): (Vec<_>, Vec<_>) = (self.folder.components().collect(), path.components().collect());
        let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
        let up = from[common..].iter().map(|_| "..".to_owned());
        let down = to[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
        up.chain(down).collect::<Vec<_>>().join("/")
    }

    /// The root below which a file lies that was found as a module; the path is relative to the agent's folder.
    pub(crate) fn root_of(&self, file: &str) -> Option<&Path> {
        let found = self.sources.anywhere().real_path(&self.folder.join(file)).ok()?;
        self.roots.iter().find(|root| found.starts_with(root)).map(PathBuf::as_path)
    }

    /// Where a module of that name would be, each place in words.
    pub(crate) fn searched(&self, name: &str) -> Vec<String> {
        let Some(path) = path_of(name) else { return Vec::new() };
        self.roots.iter().map(|root| format!("`{}`", self.shown(&root.join(format!("{path}.py"))))).collect()
    }

    /// The text of a module that was found; empty for a package without a file.
    pub(crate) fn text(&self, module: &Module) -> Result<String, ModuleError> {
        let name = || module.file.clone();
        let root = self.root_of(&module.file).ok_or_else(|| ModuleError::LeadsOut { file: name() })?;
        let (root, file) = (self.sources.below(root), self.folder.join(&module.file));
        match root.entry(&file) {
            Entry::Folder => Ok(String::new()),
            _ => root.read_text(&file, MAX_MODULE).map_err(|cause| ModuleError::Unreadable { file: name(), cause }),
        }
    }
}

/// The modules that a file and its imports need, as far as they were looked for.
pub(super) struct Modules<'a> {
    project: &'a ProjectModules,
    /// The file's own
    name: String,
    /// By their names; null for what is not to be had from the project
    found: BTreeMap<String, Value>,
    bytes: usize,
}

impl<'a> Modules<'a> {
    /// Those of a file with this text; it is the module `name`, or the one of its own name.
    pub(super) fn of(
        file: &str,
        name: Option<&str>,
        text: &str,
        project: &'a ProjectModules,
    ) -> Result<Self, ModuleError> {
        let stem = file.rsplit(['/', '\\']).next().and_then(|file| file.strip_suffix(".py")).unwrap_or(file);
        let name = name.unwrap_or(stem).to_owned();
        let parents: Vec<String> = name.match_indices('.').map(|(end, _)| name[..end].to_owned()).collect();
        let own = json!({ "file": file, "source": text, "package": stem == "__init__" });
        let found = BTreeMap::from([(name.clone(), own)]);
        let mut modules = Modules { project, name, found, bytes: text.len() };
        modules.look_for(&parents)?;
        Ok(modules)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Looks for modules that are needed, too.
    pub(super) fn look_for(&mut self, names: &[String]) -> Result<(), ModuleError> {
        for name in names {
            let module = match self.project.find(name) {
                Some(module) => {
                    let text = self.project.text(&module)?;
                    self.bytes += text.len();
                    json!({ "file": module.file, "source": text, "package": module.is_package })
                }
                None => match stand_in(name) {
                    // The cell says of modules below it that there are none.
                    Some((source, package)) => {
                        json!({ "file": format!("<{name}>"), "source": source, "package": package })
                    }
                    None => Value::Null,
                },
            };
            if self.bytes > MAX_TOGETHER {
                return Err(ModuleError::TooMuch { name: name.clone() });
            }
            self.found.insert(name.clone(), module);
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        json!(self.found)
    }
}

/// The text that stands in the place of a library's module, and whether the module is a package there.
fn stand_in(name: &str) -> Option<(&'static str, bool)> {
    if OVER_HTTP.contains(&name) {
        return Some((HTTP, false));
    }
    STAND_INS.iter().find(|(known, _)| *known == name).map(|(name, source)| (*source, *name != "leafmesh"))
}

/// The path of a dotted name of identifiers, without an extension.
fn path_of(name: &str) -> Option<String> {
    let is_identifier = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
            && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
    };
    name.split('.').all(is_identifier).then(|| name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("# {file}\n")).unwrap();
        }
    }

    fn found(modules: &ProjectModules, name: &str) -> Option<String> {
        modules.find(name).map(|module| module.file)
    }

    #[test]
    fn modules_are_found_from_the_root_of_the_project() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("project");
        write(
            &root,
            &[
                "pyproject.toml",
                "examples/tools.py",
                "examples/hotcell.toml",
                "examples/near.py",
                "src/app/__init__.py",
            ],
        );
        write(&root, &["examples/weather/agent.yaml", "examples/weather/local.py", "src/app/lib/x.py"]);
        write(outside.path(), &["above.py"]);
        let modules = ProjectModules::below_home(&Arc::new(Sources::Plain), &root.join("examples/weather"), None);
        let all = ["examples.tools", "near", "local", "app", "app.lib", "app.lib.x", "above", "examples.weather.local"];
        let found: Vec<Option<String>> = all.iter().map(|name| found(&modules, name)).collect();
        let expected = [
            Some("../tools.py"),
            Some("../near.py"),
            Some("local.py"),
            Some("../../src/app/__init__.py"),
            Some("../../src/app/lib"),
            Some("../../src/app/lib/x.py"),
            None,
            Some("local.py"),
        ];
        assert_eq!(found, expected.map(|file| file.map(str::to_owned)));
        let module = modules.find("examples.tools").unwrap();
        assert_eq!(modules.text(&module).unwrap(), "# examples/tools.py\n");
        assert_eq!(modules.searched("a.b").len(), 4);
    }

    #[test]
    fn nothing_but_modules_below_a_root_is_found() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("project");
        write(&root, &[".git/config", "agent/agent.yaml", "secrets.toml", "a-b.py", ".hidden.py"]);
        write(outside.path(), &["other/private.py"]);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path().join("other/private.py"), root.join("linked.py")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("other"), root.join("folder")).unwrap();
        }
        let modules = ProjectModules::below_home(&Arc::new(Sources::Plain), &root.join("agent"), None);
        let names =
            ["linked", "folder", "folder.private", "..other.private", "a-b", ".hidden", "secrets", "/etc/passwd", ""];
        for name in names.into_iter().chain([".git.config", "agent/agent", "agent\0"]) {
            assert_eq!(modules.find(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_home_folder_is_no_project() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), &[".git/config", "dotfiles.py", "downloads/agent/agent.yaml"]);
        let folder = home.path().join("downloads/agent");
        assert_eq!(
            found(&ProjectModules::below_home(&Arc::new(Sources::Plain), &folder, Some(home.path())), "dotfiles"),
            None
        );
        assert_eq!(
            found(&ProjectModules::below_home(&Arc::new(Sources::Plain), &folder, None), "dotfiles"),
            Some("../../dotfiles.py".to_owned())
        );
    }

    #[test]
    fn a_host_that_is_kept_to_some_folders_finds_no_modules_outside() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in
            [("pyproject.toml", ""), ("shared.py", "X = 1"), ("a/own.py", "X = 1"), ("b/other.py", "X = 1")]
        {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let names = ["own", "shared", "b.other"];
        let find = |within: Option<Arc<[PathBuf]>>| {
            let modules = ProjectModules::below_home(&Arc::new(Sources::noted(within)), &root.path().join("a"), None);
            names.map(|name| modules.find(name).is_some())
        };
        assert_eq!(find(None), [true, true, true]);
        let own = root.path().join("a").canonicalize().unwrap();
        assert_eq!(find(Some([own].into())), [true, false, false]);
    }
}
