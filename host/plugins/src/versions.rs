//! Which version of each signed plugin was used last, so that nobody brings back an older one unnoticed: its signature is
//! as good as that of the newer one, and it may have what the newer one mended.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use semver::Version;
use thiserror::Error;

use crate::toml_file::{self, TomlFileError};

/// The name of the file in the user's configuration folder.
pub const VERSIONS_FILE: &str = "plugin-versions.toml";
/// Bytes that the file may have.
const MAX_TEXT: u64 = 4 << 20;

/// The newest version of each plugin that was used, by name, in a file of the user's. Without a file nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenVersions(Option<PathBuf>);

/// Why a plugin may not be used in a version, or why that is not known or kept.
#[derive(Debug, Error)]
pub enum VersionError {
    /// A newer version was used before
    #[error(
        "it is {}, and version {seen} was used before; `hotcell plugin grant {plugin} --allow-older` allows that",
        in_words(.version.as_deref())
    )]
    Older {
        /// The plugin
        plugin: String,
        /// Its version, if it says one
        version: Option<String>,
        /// The version that was used
        seen: String,
    },
    /// The file with the versions cannot be read
    #[error("cannot use `{file}`: {cause}", file = file.display())]
    Read {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: TomlFileError,
    },
    /// The file with the versions cannot be written
    #[error("cannot write `{file}`: {cause}", file = file.display())]
    Write {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: TomlFileError,
    },
}

impl SeenVersions {
    /// Those in this file, which need not be there.
    pub fn in_file(file: PathBuf) -> Self {
        Self(Some(file))
    }

    /// Whether a plugin may be used in this version; the error says which one was used before.
    ///
    /// # Errors
    /// When a newer one was used, or the file cannot be read.
    pub fn check(&self, name: &str, version: Option<&str>) -> Result<(), VersionError> {
        let Some(file) = &self.0 else { return Ok(()) };
        match read(file)?.get(name) {
            Some(seen) if is_older(version, Some(seen)) => {
                let (plugin, version) = (name.to_owned(), version.map(str::to_owned));
                Err(VersionError::Older { plugin, version, seen: seen.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Takes note that a plugin is used in this version.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn note(&self, name: &str, version: Option<&str>) -> Result<(), VersionError> {
        let (Some(file), Some(version)) = (&self.0, version) else { return Ok(()) };
        let _changing = toml_file::changing();
        let seen = read(file)?;
        match seen.get(name) {
            Some(known) if !is_older(Some(known), Some(version)) => Ok(()),
            _ => keep(file, seen, name, Some(version)),
        }
    }

    /// Lets a plugin be used in this version, whatever was used before.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn allow(&self, name: &str, version: Option<&str>) -> Result<(), VersionError> {
        let Some(file) = &self.0 else { return Ok(()) };
        let _changing = toml_file::changing();
        keep(file, read(file)?, name, version)
    }
}

fn keep(
    file: &Path,
    mut seen: BTreeMap<String, String>,
    name: &str,
    version: Option<&str>,
) -> Result<(), VersionError> {
    match version {
        Some(version) => seen.insert(name.to_owned(), version.to_owned()),
        None => seen.remove(name),
    };
    toml_file::write(file, &seen).map_err(|cause| VersionError::Write { file: file.to_owned(), cause })
}

/// Whether the first version is older than the second. One that is not said is older than any.
pub(crate) fn is_older(one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(one), Some(other)) => compared(one, other) == Ordering::Less,
    }
}

pub(crate) fn in_words(version: Option<&str>) -> String {
    version.map_or_else(|| "of no version".to_owned(), |version| format!("version {version}"))
}

/// By the rules of semantic versions; `1.2` stands for `1.2.0`. Others are compared number by number.
fn compared(one: &str, other: &str) -> Ordering {
    match (semantic(one), semantic(other)) {
        (Some(one), Some(other)) => one.cmp_precedence(&other),
        _ => numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other)),
    }
}

fn semantic(version: &str) -> Option<Version> {
    let plain = version.strip_prefix('v').unwrap_or(version);
    let end = plain.find(['-', '+']).unwrap_or(plain.len());
    let (numbers, rest) = plain.split_at(end);
    let missing = 2_usize.checked_sub(numbers.matches('.').count())?;
    Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn read(file: &Path) -> Result<BTreeMap<String, String>, VersionError> {
    toml_file::read(file, MAX_TEXT).map_err(|cause| VersionError::Read { file: file.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_people_mean_them() {
        let older = [
            ("1.2.3", "1.2.10"),
            ("1.9", "1.10"),
            ("1.0.0-rc.1", "1.0.0"),
            ("v1.0.0", "2.0.0"),
            ("2024.01.02.1", "2024.01.10.0"),
            ("r7", "r12"),
        ];
        for (one, other) in older {
            assert!(is_older(Some(one), Some(other)) && !is_older(Some(other), Some(one)), "{one} {other}");
        }
        assert!(is_older(None, Some("0.1")) && !is_older(Some("0.1"), None) && !is_older(None, None));
        for same in [("1.2", "1.2.0"), ("1.0.0+linux", "1.0.0+mac")] {
            assert!(!is_older(Some(same.0), Some(same.1)) && !is_older(Some(same.1), Some(same.0)), "{same:?}");
        }
    }

    #[test]
    fn an_older_version_is_refused_until_it_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(VERSIONS_FILE);
        let seen = SeenVersions::in_file(file.clone());
        assert!(seen.check("p", Some("2.0.0")).is_ok());
        seen.note("p", Some("2.0.0")).unwrap();
        seen.note("p", Some("1.0.0")).unwrap();
        let refused = seen.check("p", Some("1.0.0")).unwrap_err().to_string();
        assert!(refused.starts_with("it is version 1.0.0, and version 2.0.0 was used before"), "{refused}");
        assert!(seen.check("p", None).unwrap_err().to_string().starts_with("it is of no version"));
        assert!(seen.check("p", Some("2.0.0")).is_ok() && seen.check("other", None).is_ok());
        seen.allow("p", Some("1.0.0")).unwrap();
        assert!(seen.check("p", Some("1.0.0")).is_ok() && seen.check("p", Some("3")).is_ok());
        // What cannot be read allows nothing.
        std::fs::write(&file, "p = 7").unwrap();
        assert!(matches!(seen.check("p", Some("9.0.0")), Err(VersionError::Read { .. })));
    }
}
