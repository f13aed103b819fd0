//! Which images the repository carries, what each is made from, and the digest that ties the two together.
//!
//! The build script of `hotcell-interpreters` and the program that makes the images share this module: both must name
//! the sources of an image in the same way, or a stale image would pass for a current one.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Where the images lie in the repository.
pub(crate) const DIRECTORY: &str = "plugins/interpreters/images";
/// The list of images beside them: name, digest of the image, digest of its sources.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The command that makes the images anew.
pub(crate) const REBUILD: &str = "cargo run --release -p hotcell-interpreter-images";
/// Changes when the same sources would give another image, apart from the compiler, which is a source.
const GENERATION: &str = "wasmtime-wizer 48.0.8, 3";

/// An image that the repository carries, compressed, as `NAME.wasm.zst`.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    /// Files and folders that go into it, from the repository's root.
    pub(crate) inputs: &'static [&'static str],
}

/// All of them.
pub(crate) const SOURCES: [Source; 4] = [
    Source {
        name: "javascript",
        inputs: &[
            "host/cells/wit",
            "plugins/interpreters/Cargo.lock",
            "plugins/interpreters/Cargo.toml",
            "plugins/interpreters/javascript",
            "plugins/interpreters/output",
            "rust-toolchain.toml",
        ],
    },
    Source {
        name: "shell",
        inputs: &[
            "host/cells/wit",
            "plugins/interpreters/Cargo.lock",
            "plugins/interpreters/Cargo.toml",
            "plugins/interpreters/output",
            "plugins/interpreters/shell",
            "rust-toolchain.toml",
        ],
    },
    Source {
        name: "documents",
        inputs: &[
            "plugins/Cargo.lock",
            "plugins/Cargo.toml",
            "plugins/documents/Cargo.toml",
            "plugins/documents/src",
            "rust-toolchain.toml",
            "sdk/rust/hotcell-plugin",
            "sdk/rust/hotcell-plugin-macros",
            "wit",
        ],
    },
    Source {
        name: "plugins",
        inputs: &[
            "plugins/Cargo.lock",
            "plugins/Cargo.toml",
            "plugins/a2a/Cargo.toml",
            "plugins/a2a/src",
            "plugins/audit/Cargo.toml",
            "plugins/audit/src",
            "plugins/autogen/Cargo.toml",
            "plugins/autogen/src",
            "plugins/calculator/Cargo.toml",
            "plugins/calculator/src",
            "plugins/channels/Cargo.toml",
            "plugins/channels/src",
            "plugins/composio/Cargo.toml",
            "plugins/composio/src",
            "plugins/connector/Cargo.toml",
            "plugins/connector/src",
            "plugins/crewai/Cargo.toml",
            "plugins/crewai/src",
            "plugins/dates/Cargo.toml",
            "plugins/dates/src",
            "plugins/diff/Cargo.toml",
            "plugins/diff/src",
            "plugins/fetch/Cargo.toml",
            "plugins/fetch/src",
            "plugins/files/Cargo.toml",
            "plugins/files/src",
            "plugins/fs/Cargo.toml",
            "plugins/fs/src",
            "plugins/guard/Cargo.toml",
            "plugins/guard/src",
            "plugins/json/Cargo.toml",
            "plugins/json/src",
            "plugins/langgraph/Cargo.toml",
            "plugins/langgraph/src",
            "plugins/mcp/Cargo.toml",
            "plugins/mcp/src",
            "plugins/n8n/Cargo.toml",
            "plugins/n8n/src",
            "plugins/regex/Cargo.toml",
            "plugins/regex/src",
            "plugins/table/Cargo.toml",
            "plugins/table/src",
            "plugins/webhook/Cargo.toml",
            "plugins/webhook/src",
            "plugins/zapier/Cargo.toml",
            "plugins/zapier/src",
            "rust-toolchain.toml",
            "sdk/rust/hotcell-plugin",
            "sdk/rust/hotcell-plugin-macros",
            "wit",
        ],
    },
];

/// The plugins in the image `plugins`, by the names of their folders and components.
#[allow(dead_code, reason = "only the program that makes the images needs it")]
pub(crate) const PLUGINS: [&str; 21] = [
    "a2a",
    "audit",
    "autogen",
    "calculator",
    "channels",
    "composio",
    "crewai",
    "dates",
    "diff",
    "fetch",
    "files",
    "fs",
    "guard",
    "json",
    "langgraph",
    "mcp",
    "n8n",
    "regex",
    "table",
    "webhook",
    "zapier",
];

impl Source {
    /// The digest of everything that the image is made from: paths and contents, in the order of the paths.
    pub(crate) fn digest(&self, root: &Path) -> Result<String, Box<dyn Error>> {
        let mut files = Vec::new();
        for input in self.inputs {
            collect(root, Path::new(input), &mut files)?;
        }
        files.sort();
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        add(GENERATION.as_bytes());
        for file in files {
            let content = fs::read(root.join(&file)).map_err(|error| format!("cannot read {file}: {error}"))?;
            add(file.as_bytes());
            add(&content);
        }
        Ok(hexadecimal(&digest.finalize()))
    }
}

/// Adds a file, or all files below a folder, as paths with `/` from the root. Build folders are no source.
fn collect(root: &Path, path: &Path, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let full = root.join(path);
    let failed = |error| format!("cannot read {}: {error}", full.display());
    if full.is_dir() {
        for entry in fs::read_dir(&full).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name != "target" {
                collect(root, &path.join(name), files)?;
            }
        }
        return Ok(());
    }
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    files.push(parts.join("/"));
    Ok(())
}

/// A line of the manifest.
pub(crate) struct Entry {
    /// SHA-256 of the image before it was compressed.
    pub(crate) image: String,
    /// The digest of the sources that it was made from.
    pub(crate) sources: String,
}

/// What the manifest says of an image.
pub(crate) fn entry(root: &Path, name: &str) -> Result<Entry, Box<dyn Error>> {
    let path = manifest_path(root);
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if let (Some(found), Some(image), Some(sources)) = (words.next(), words.next(), words.next())
            && found == name
        {
            return Ok(Entry { image: image.to_owned(), sources: sources.to_owned() });
        }
    }
    Err(format!("{} has no line for `{name}`; run `{REBUILD}`", path.display()).into())
}

/// The manifest.
pub(crate) fn manifest_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(MANIFEST)
}

/// An image's compressed file.
pub(crate) fn image_path(root: &Path, name: &str) -> PathBuf {
    root.join(DIRECTORY).join(format!("{name}.wasm.zst"))
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
