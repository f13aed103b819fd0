//! The key of a user, by which what hotcell itself kept with a run is told from what somebody else wrote into its journal: a journal is a
//! file, and may have been sent.

use std::path::{Path, PathBuf};

use hotcell_plugins::Trust;

use crate::redaction_key::{KeyError, read, read_or_make};

/// The name of its file.
const FILE: &str = "user.key";

/// The key of a user, in a file beside the list of folders that they trust. It is made when it is first needed.
#[derive(Clone, Debug)]
pub struct UserKey {
    /// None for a user without a folder for such files
    file: Option<PathBuf>,
}

impl UserKey {
    /// The key of the user who runs this.
    pub fn of_user() -> Self {
        UserKey { file: dirs::config_dir().map(|folder| folder.join("hotcell").join(FILE)) }
    }

    /// The key beside the list of trusted folders; none where no list says what is trusted.
    pub(crate) fn beside_list(trust: &Trust) -> Self {
        let file = match trust {
            Trust::Listed(list) | Trust::Named(list) => Some(list).filter(|list| !list.as_os_str().is_empty()),
            Trust::Everything => None,
        };
        UserKey { file: file.map(|list| list.with_file_name(FILE)) }
    }

    /// The key in this file.
    pub fn in_file(file: PathBuf) -> Self {
        UserKey { file: Some(file) }
    }

    /// A code for this text that nobody can make without the key. None where there is no key and none can be made.
    pub fn code(&self, text: &str) -> Option<String> {
        let file = self.file.as_deref()?;
        match code(file, text) {
            Ok(code) => Some(code),
            Err(error) => {
                tracing::warn!(target: "hotcell::graph", "nothing is remembered that needs the key of the user: {error}");
                None
            }
        }
    }

    /// Whether this is the code for this text.
    pub fn has_made(&self, code: &str, text: &str) -> bool {
        let key = self.file.as_deref().and_then(|file| read(file).ok());
        // Codes are compared in constant time.
        key.is_some_and(|key| blake3::Hash::from_hex(code).is_ok_and(|code| code == of(key.bytes(), text)))
    }
}

fn code(file: &Path, text: &str) -> Result<String, KeyError> {
    if let Some(folder) = file.parent() {
        hotcell_files::make_private_folder(folder).map_err(|cause| KeyError::File {
            path: folder.to_owned(),
            doing: "made",
            cause,
        })?;
    }
    Ok(of(read_or_make(file)?.bytes(), text).to_hex().to_string())
}

fn of(key: &[u8; 32], text: &str) -> blake3::Hash {
    blake3::keyed_hash(key, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::UserKey;

    #[test]
    fn a_code_is_made_by_whoever_has_the_key() {
        let place = tempfile::tempdir().unwrap();
        let of = |name: &str| UserKey::in_file(place.path().join(name).join("user.key"));
        let (mine, others) = (of("mine"), of("others"));
        assert!(!mine.has_made(&"0".repeat(64), "a"), "there is no key yet");
        let code = mine.code("a").unwrap();
        assert!(mine.has_made(&code, "a") && of("mine").has_made(&code, "a"));
        assert!(!mine.has_made(&code, "b") && !mine.has_made("", "a"));
        assert!(!mine.has_made(&others.code("a").unwrap(), "a"));
    }
}
