//! From a project to a described component.

mod c;
mod javascript;
mod native;
mod python;
mod rust;
mod stamp;
mod toolchain;
mod world;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use crate::failure::BuildError;
pub use native::{Native, native};

use crate::component;
use crate::description;
use crate::manifest::{FILE, Manifest};
use crate::project::{Language, check_name, file_stem};
use crate::tools::Tools;

use stamp::Stamp;
use toolchain::Toolchain;

/// Something that a person who waits for a build may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildEvent {
    /// A program starts; it may take a while.
    Running {
        /// Its path or name.
        program: String,
        /// What it is for, as in "to describe the plugin".
        purpose: &'static str,
    },
}

/// A component that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file, in the folder `build` of the project.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256 digest, 64 hexadecimal digits.
    pub digest: String,
    /// Names that the component exports.
    pub exports: Vec<String>,
    /// Names that it imports.
    pub imports: Vec<String>,
    /// What it says about itself.
    pub description: Value,
    /// Whether it was there already, made of the same sources by the same tools.
    pub is_unchanged: bool,
}

/// Builds the plugin in `directory` with the tools that the environment names, and tells `events` what it does.
///
/// The project is one of cargo's where there is a `Cargo.toml`, and of the language in `plugin.toml` otherwise.
///
/// # Errors
///
/// [`BuildError`] says what is wrong with the project, which tool is missing and what installs it, or what a tool said
/// when it failed.
pub fn build(directory: &Path, events: &mut dyn FnMut(BuildEvent)) -> Result<Built, BuildError> {
    build_with(directory, &Tools::from_environment(), events)
}

/// Builds as [`build`] does, with tools from elsewhere.
///
/// # Errors
///
/// The same as those of [`build`].
pub fn build_with(directory: &Path, tools: &Tools, events: &mut dyn FnMut(BuildEvent)) -> Result<Built, BuildError> {
    let directory = match fs::canonicalize(directory) {
        Ok(directory) => directory,
        Err(source) => return Err(BuildError::Io { action: "open", path: directory.to_owned(), source }),
    };
    if directory.join(FILE).is_file() {
        let job = Job::begin(&directory, "work", tools, events)?;
        return job.build();
    }
    if directory.join("Cargo.toml").is_file() {
        let bytes = rust::build(&directory, tools, events)?;
        let path = component_path(&directory, &described_name(&bytes, &directory)?);
        // Cargo knows by itself what it has to compile again, and not whether that is what was built the last time.
        let is_unchanged = read_file(&path).is_ok_and(|before| before == bytes);
        return finish(path, &bytes, is_unchanged);
    }
    Err(BuildError::NotAProject { directory })
}

/// What the build of a plugin in this language needs and what is not there, if anything is.
#[must_use]
pub fn missing_tool(directory: &Path, language: Language, tools: &Tools) -> Option<BuildError> {
    let found = match language {
        Language::Rust => rust::find_cargo(directory, tools).map(drop),
        other => Toolchain::find(other, tools, directory).map(drop),
    };
    found.err()
}

/// The build of a project with a `plugin.toml`.
struct Job<'a> {
    directory: &'a Path,
    manifest: Manifest,
    /// The folder of the SDK.
    sdk: PathBuf,
    /// Where files go that only the build needs.
    work: PathBuf,
    world: world::World,
    tools: &'a Tools,
    events: &'a mut dyn FnMut(BuildEvent),
}

impl<'a> Job<'a> {
    fn begin(
        directory: &'a Path,
        work: &str,
        tools: &'a Tools,
        events: &'a mut dyn FnMut(BuildEvent),
    ) -> Result<Self, BuildError> {
        let manifest = Manifest::read(directory)?;
        let source = directory.join(&manifest.source);
        if !source.is_file() {
            return Err(BuildError::NoSource { path: source });
        }
        let sdk = directory.join(&manifest.sdk);
        if !sdk.join("wit").is_dir() {
            return Err(BuildError::NoSdk { path: sdk });
        }
        let work = directory.join("build").join(work);
        remove_folder(&work)?;
        create_folder(&work)?;
        let world = world::write(&manifest, &sdk, &work.join("wit"))?;
        Ok(Self { directory, manifest, sdk, work, world, tools, events })
    }

    fn build(mut self) -> Result<Built, BuildError> {
        let toolchain = Toolchain::find(self.manifest.language, self.tools, self.directory)?;
        let path = component_path(self.directory, &file_stem(&self.manifest.name));
        let stamp = toolchain.versions(self.tools, self.directory);
        let stamp = stamp.and_then(|versions| Stamp::of(self.directory, &self.manifest, versions));
        if let Some(component) = stamp.as_ref().and_then(|stamp| stamp.component(self.directory, &path)) {
            remove_folder(&self.work)?;
            return finish(path, &component, true);
        }
        let Made { mut component, offered, read } = toolchain.build(&mut self)?;
        let description = description::compose(&self.manifest, &self.world.contract, &offered);
        let description = description.map_err(|message| BuildError::Description { message })?;
        component::add_description(&mut component, description.to_string().as_bytes());
        remove_folder(&self.work)?;
        stamp::forget(&path);
        let built = finish(path, &component, false)?;
        if let (Some(stamp), Some(read)) = (stamp, read) {
            stamp.write(self.directory, read, &built.path, built.digest.clone());
        }
        Ok(built)
    }

    /// The file with the code.
    fn source(&self) -> PathBuf {
        self.directory.join(&self.manifest.source)
    }

    fn says(&mut self, program: &Path, purpose: &'static str) {
        (self.events)(BuildEvent::Running { program: program.display().to_string(), purpose });
    }
}

/// What the tools of a language made.
struct Made {
    component: Vec<u8>,
    /// What the code offers.
    offered: Value,
    /// The files that were read for it, as far as they are the author's; none where the tools do not say.
    read: Option<Vec<PathBuf>>,
}

/// Where the component of a project goes.
fn component_path(directory: &Path, name: &str) -> PathBuf {
    directory.join("build").join(format!("{name}.wasm"))
}

/// The file name for a component that describes itself.
fn described_name(bytes: &[u8], directory: &Path) -> Result<String, BuildError> {
    let parts = component::read(bytes)?;
    let own = parts.descriptions.first().and_then(|text| serde_json::from_slice::<Value>(text).ok());
    let own = own.as_ref().and_then(|value| value.get("name")).and_then(Value::as_str);
    match own {
        Some(name) => match check_name(name) {
            Ok(()) => Ok(file_stem(name)),
            Err(error) => Err(BuildError::Description { message: error.to_string() }),
        },
        None => Ok(directory.file_name().map_or_else(|| "plugin".into(), |name| name.to_string_lossy().into_owned())),
    }
}

/// Checks a component, writes it unless it is there already, and says what it has.
fn finish(path: PathBuf, bytes: &[u8], is_unchanged: bool) -> Result<Built, BuildError> {
    let parts = component::read(bytes)?;
    let text = match parts.descriptions.as_slice() {
        [one] => *one,
        several => return Err(BuildError::Descriptions { found: several.len() }),
    };
    let description: Value = match serde_json::from_slice(text) {
        Ok(description) => description,
        Err(error) => return Err(BuildError::Description { message: format!("it is not JSON: {error}") }),
    };
    description::check_exports(&description, &parts.exports).map_err(|message| BuildError::Description { message })?;
    let (exports, imports) = (parts.exports, parts.imports);
    if !is_unchanged {
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        write_file(&path, bytes)?;
    }
    let (size, digest) = (bytes.len() as u64, stamp::digest(bytes));
    Ok(Built { path, size, digest, exports, imports, description, is_unchanged })
}

fn read_file(path: &Path) -> Result<Vec<u8>, BuildError> {
    hotcell_files::read(path, hotcell_files::MAX_COMPONENT).map_err(|source| BuildError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    fs::write(path, bytes).map_err(|source| BuildError::Io { action: "write", path: path.to_owned(), source })
}

fn create_folder(path: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(path).map_err(|source| BuildError::Io { action: "create", path: path.to_owned(), source })
}

fn remove_folder(path: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// What a program printed as JSON.
fn parse_offered(text: &[u8], from: &str) -> Result<Value, BuildError> {
    serde_json::from_slice(text)
        .map_err(|error| BuildError::Description { message: format!("{from} is not JSON: {error}") })
}

/// The files that a program wrote down as read by it, a JSON list of paths; none where it wrote nothing.
fn files_read(list: &Path) -> Option<Vec<PathBuf>> {
    let text = hotcell_files::read(list, hotcell_files::MAX_TEXT).ok()?;
    serde_json::from_slice(&text).ok()
}
